// lock-node-redlock PORT[,PORT...] KEY COMMAND...: node-redlock over one server or several, as its
// manual shows it, without a limit on tries. It asks again after 200 ms, more or less, and renews
// every 10 s.
const { spawn } = require('child_process');
const Redis = require('ioredis');
const Redlock = require('redlock');

// By itself ioredis would wait without end for a server that does not answer.
const TIMEOUTS = { commandTimeout: 1000, maxRetriesPerRequest: 0 };
const [ports, key, ...command] = process.argv.slice(2);
const Client = Redis.default || Redis;
const servers = ports.split(',').map((port) => new Client(Number(port), TIMEOUTS));
servers.forEach((server) => server.on('error', () => {}));

async function main() {
    let lock = await new Redlock(servers, { retryCount: -1 }).lock(key, 30000);
    const renewal = setInterval(async () => { lock = await lock.extend(30000); }, 10000);
    const status = await new Promise((resolve) => {
        spawn(command[0], command.slice(1), { stdio: 'inherit' }).on('exit', resolve);
    });
    clearInterval(renewal);
    await lock.unlock().catch(() => {});
    servers.forEach((server) => server.disconnect());
    process.exitCode = status;
}

main();
