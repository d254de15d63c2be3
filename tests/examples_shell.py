#!/usr/bin/env python3
"""examples_shell.py FILE DIRECTORY: takes the shell out of a file of examples/.

Each piece becomes DIRECTORY/NN-NAME.sh, in the order in which the file's own reader would run them.
A file that is not what it should be is an error.
"""

import configparser
import pathlib
import re
import shlex
import sys

import yaml


def crontab(text):
    moment = r"(\*|\d+)(/\d+)?"
    for line in text.splitlines():
        if not line or line.startswith("#") or re.fullmatch(r"\w+=\S+", line):
            continue
        found = re.fullmatch(rf"({moment}\s+){{5}}(?P<user>[a-z-]+)\s+(?P<command>rlock .*)", line)
        if not found:
            raise ValueError(f"no line of a crontab: {line}")
        if re.search(r"(?<!\\)%", found["command"]):
            raise ValueError(f"cron takes % for a newline: {line}")
        yield found["user"], found["command"]


def unit(text):
    parser = configparser.ConfigParser(interpolation=None, delimiters="=", comment_prefixes="#")
    parser.optionxform = str
    parser.read_string(text.replace("\\\n", " "))
    if parser.has_section("Timer"):
        return
    service = parser["Service"]
    program, *words = shlex.split(service["ExecStart"])
    if program != "/usr/local/bin/rlock":
        raise ValueError(f"not where rlock is installed: {program}")
    name = service["LoadCredential"].partition(":")[0]
    words = [word.replace("%d/" + name, "credential") for word in words]
    environment = shlex.join(shlex.split(service["Environment"]))
    yield "service", f"export {environment}\n{shlex.join(['rlock', *words])}"


def gitlab(text):
    jobs = yaml.safe_load(text)
    stages = [".pre", *jobs.pop("stages")]
    variables = export(jobs.pop("variables"))
    for job in jobs.values():
        if job["stage"] not in stages:
            raise ValueError(f"no stage {job['stage']}")
    for name, job in sorted(jobs.items(), key=lambda job: stages.index(job[1]["stage"])):
        for number in range(1, job.get("parallel", 1) + 1):
            own = f"export CI_NODE_INDEX={number}\n"
            yield name, variables + own + "\n".join(job["script"])


def github(text):
    flow = yaml.safe_load(text)
    flow[True]["push"]  # "on", in the YAML of Python
    variables = export(flow["env"])
    for job in flow["jobs"].values():
        if not job["runs-on"] or not job["timeout-minutes"]:
            raise ValueError("no runner or no limit")
        for step in job["steps"]:
            if "${{" in step.get("run", ""):
                raise ValueError("an expression inside a shell line is an injection")
            if "run" in step:
                # Variables that a step leaves for the next ones.
                yield step["name"], f'{variables}set -a; . "$GITHUB_ENV"; set +a\n{step["run"]}'
            elif "uses" not in step:
                raise ValueError("a step that does nothing")


def jenkinsfile(text):
    if text.count("{") != text.count("}") or "pipeline {" not in text:
        raise ValueError("no pipeline")
    for stage, line in re.findall(r"stage\('([^']+)'\).*?\bsh '([^']*)'", text, re.DOTALL):
        yield stage, line


def kubernetes(text):
    job = yaml.safe_load(text)
    if (job["apiVersion"], job["kind"]) != ("batch/v1", "CronJob"):
        raise ValueError("no CronJob")
    spec = job["spec"]["jobTemplate"]["spec"]
    pod = spec["template"]["spec"]
    if pod["restartPolicy"] not in ("Never", "OnFailure") or spec["backoffLimit"] != 0:
        raise ValueError("restarts")
    for container in pod["containers"]:
        if not all(isinstance(word, str) for word in container["command"]):
            raise ValueError("a word of the command is not a string")
        names = [entry["name"] for entry in container["env"]]
        words = [re.sub(r"\$\((\w+)\)", lambda found: names[names.index(found[1])], word)
                 for word in container["command"]]
        yield container["name"], shlex.join(words)


def nagios(text):
    text = re.sub(r"#.*", "", text)
    values = dict(re.findall(r"^ +(command_name|command_line|check_command) +(.*)$", text, re.M))
    name, *arguments = values["check_command"].split("!")
    if name != values["command_name"]:
        raise ValueError(f"no command {name}")
    line = values["command_line"]
    for number, argument in enumerate(arguments, 1):
        line = line.replace(f"$ARG{number}$", argument)
    line = line.replace("/usr/local/bin/rlock", "rlock")
    yield "check", line.replace("/etc/rlock.conf", "config")


def icinga(text):
    argument = r'^ +"(--[a-z-]+|keys)" = (?:\{\s+value = )?"\$(\w+)\$"'
    arguments = dict(re.findall(argument, text, re.M))
    values = dict(re.findall(r'^ +vars\.(\w+) = \[? ?"([^"]*)"', text, re.M))
    for option, variable in arguments.items():
        if option != "keys":
            yield f"help {option}", f"rlock help check | grep -q -e ' {option} '"
    if unknown := set(values) - set(arguments.values()):
        raise ValueError(f"not in the command: {unknown}")
    values["rlock_password_file"] = "credential"
    line = [word for option, variable in arguments.items() if variable in values
            for word in (option, values[variable]) if word != "keys"]
    yield "check", shlex.join(["rlock", "check", *line])


def write(path, content, mode):
    return (f"printf %s {shlex.quote(content)} >{shlex.quote(path)}\n"
            f"chmod {mode} {shlex.quote(path)}")


def ansible(text):
    (play,) = yaml.safe_load(text)
    variables = {**play["vars"], "rlock_password": "secret"}

    def filled(value):
        while "{{" in value:
            value = re.sub(r"\{\{ (\w+) \}\}", lambda found: variables[found[1]], value)
        return value

    for task in play["tasks"]:
        for module, values in task.items():
            if module == "ansible.builtin.copy":
                yield task["name"], write(values["dest"], filled(values["content"]),
                                          values["mode"])
            elif module == "ansible.builtin.get_url":
                kind, checksum = filled(values["checksum"]).split(":")
                target = values["dest"]
                yield task["name"], (
                    f"curl -o {target} {filled(values['url'])}\n"
                    f"echo '{checksum}  {target}' | {kind}sum -c\nchmod {values['mode']} {target}")
            elif module == "ansible.builtin.command":
                fine = task["failed_when"].removeprefix(f"{task['register']}.rc not in ")
                yield task["name"], (f"status=0\n{values} || status=$?\n"
                                     f"echo '{fine}' | grep -q \"[[ ]${{status}}[],]\"")
            elif module == "ansible.builtin.file":
                yield task["name"], f"mkdir -p {values['path']}"
            elif module == "ansible.builtin.group":
                if values != {"name": "rlock", "system": True}:
                    raise ValueError("an unexpected group")
            elif module not in ("name", "no_log", "register", "changed_when", "failed_when"):
                raise ValueError(f"an unknown module {module}")


def cloud_init(text):
    head, _, _ = text.partition("\n")
    if head != "#cloud-config":
        raise ValueError("not the first line that cloud-init expects")
    config = yaml.safe_load(text)
    for file in config["write_files"]:
        yield file["path"], (f"mkdir -p {pathlib.Path(file['path']).parent}\n"
                             + write(file["path"], file["content"], file["permissions"]))
    # cloud-init writes the lines into one script for sh, which a failure does not end.
    yield "runcmd", "\n".join(["set +e", *config["runcmd"]])


def export(variables):
    values = {
        name: re.sub(r"\$\{\{ secrets\.\w+ \}\}", "secret", value)
        for name, value in variables.items()
    }
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


READERS = {"crontab": crontab, "rlock-backup.service": unit, "rlock-backup.timer": unit,
           "rlock-metrics.service": unit, "rlock-metrics.timer": unit,
           "nagios-rlock.cfg": nagios, "icinga2-rlock.conf": icinga,
           "gitlab-ci.yml": gitlab, "github-actions.yml": github, "Jenkinsfile": jenkinsfile,
           "kubernetes-cronjob.yaml": kubernetes, "ansible.yml": ansible,
           "cloud-init.yaml": cloud_init}


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for number, (name, shell) in enumerate(READERS[source.name](source.read_text()), 1):
        plain = re.sub(r"\W+", "-", name)
        (target / f"{number:02}-{plain}.sh").write_text(shell + "\n")


main()
