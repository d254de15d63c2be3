// The table of locks, live. What others wrote only ever becomes text.
"use strict";

const EVERY = 2000;
const open = new Set(); // keys of the locks that are shown in full
let locks = null;
let seen = null;

// Characters that control something, or turn the direction of writing, are spelled.
const TRICKS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function plain(text) {
    return String(text).replace(TRICKS, (c) =>
        "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

function duration(ms) {
    const s = Math.floor(ms / 1000);
    const two = (n) => String(n).padStart(2, "0");
    if (s < 1) return ms + "ms";
    if (s < 60) return s + "s";
    if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
    if (s < 86400) return Math.floor(s / 3600) + "h" + two(Math.floor(s / 60) % 60) + "m";
    return Math.floor(s / 86400) + "d" + two(Math.floor(s / 3600) % 24) + "h";
}

function who(party) {
    const at = party.host ? "@" + party.host : "";
    return (party.user || at ? (party.user || "") + at : "someone") +
        (party.pid ? " pid " + party.pid : "") + (party.command ? " (" + party.command + ")" : "");
}

// Those that nest in another holder hold the lock with that one.
function outer(lock) {
    return lock.holders.filter((holder) =>
        !lock.holders.some((other) => holder.owner.startsWith(other.owner + ".")));
}

const oldest = (parties) => Math.max(0, ...parties.map((party) => party.age_ms));

// What hurts most comes first, as in rlock top.
function compare(a, b) {
    return (b.waiters.length > 0) - (a.waiters.length > 0) ||
        oldest(b.waiters) - oldest(a.waiters) || oldest(b.holders) - oldest(a.holders) ||
        (a.key < b.key ? -1 : 1);
}

function element(name, text) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = plain(text);
    return made;
}

function keyCell(lock) {
    const cell = element("td");
    const button = cell.appendChild(element("button", lock.key));
    button.type = "button";
    button.setAttribute("aria-expanded", open.has(lock.key));
    button.addEventListener("click", () => {
        if (!open.delete(lock.key)) open.add(lock.key);
        draw();
    });
    return cell;
}

function holdersText(holders) {
    if (holders.length !== 1) return holders.length;
    return (holders[0].kept ? "kept; by " : "") + who(holders[0]);
}

function row(lock) {
    const holders = outer(lock);
    const held = holders.length > 0;
    const made = element("tr");
    made.className = (held ? "held " : "") + (lock.waiters.length > 0 ? "waited" : "");
    const mode = (!held ? "free" : lock.mode === "limit" ? "limit " + lock.limit : lock.mode) +
        (lock.paused ? ", paused" : "");
    const known = lock.holders.some((holder) => holder.since !== null);
    const left = Math.max(0, ...lock.holders.map((holder) => holder.lease_left_ms));
    made.append(keyCell(lock), element("td", mode), element("td", holdersText(holders)),
        element("td", known ? duration(oldest(lock.holders)) : "-"),
        element("td", known ? duration(left) : "-"), element("td", lock.waiters.length),
        element("td", holders.length === 1 && holders[0].label || "-"));
    return made;
}

function partyText(what, party) {
    const since = party.since === null ? "-" : party.since + " (" + duration(party.age_ms) + ")";
    return what + " " + who(party) + ", " + party.mode + ", since " + since + (party.label ? ", label " + party.label : "");
}

function decisionText(what, decision) {
    return what + " by " + who(decision) + " for another " + duration(decision.left_ms) + ": " +
        decision.reason;
}

// Every holder, and the queue in its order.
function parties(lock) {
    const made = element("tr");
    const list = element("ol");
    const cell = made.appendChild(element("td"));
    made.className = "parties";
    cell.colSpan = 7;
    cell.append(list);
    if (lock.paused)
        list.append(element("li", decisionText("paused", lock.paused)));
    for (const holder of lock.holders)
        list.append(element("li", partyText(holder.kept ? "kept for" : "holder", holder)));
    for (const waiter of lock.waiters)
        list.append(element("li", partyText("waiter " + waiter.position, waiter)));
    return made;
}

function draw() {
    const body = document.querySelector("tbody");
    const focused = document.activeElement && document.activeElement.textContent;
    const rows = [];
    for (const lock of locks) {
        rows.push(row(lock));
        if (open.has(lock.key)) rows.push(parties(lock));
    }
    body.replaceChildren(...rows);
    document.querySelector("table").hidden = locks.length === 0;
    for (const button of body.querySelectorAll("button"))
        if (button.textContent === focused) button.focus();
}

function summary() {
    const waiting = locks.reduce((sum, lock) => sum + lock.waiters.length, 0);
    const count = locks.length === 0 ? "no locks" :
        locks.length + (locks.length === 1 ? " lock" : " locks");
    return count + (waiting > 0 ? ", " + waiting + " waiting" : "");
}

function say(text, away) {
    document.body.classList.toggle("away", away);
    document.getElementById("heading").textContent =
        plain(new Date().toLocaleTimeString() + "  " + text);
}

// The table stays as it was.
function sayAway(why) {
    say("out of reach" + (seen ? " since " + seen.toLocaleTimeString() : "") + ": " + why, true);
}

async function look() {
    try {
        const response = await fetch("locks.json", {signal: AbortSignal.timeout(20000)});
        const answer = await response.json();
        if (response.ok) {
            locks = answer.filter(lock => lock.key !== null).sort(compare);
            seen = new Date();
            draw();
            say(summary(), false);
        } else {
            sayAway(answer.error);
        }
    } catch (error) {
        sayAway("rlock serve does not answer");
    }
    setTimeout(look, EVERY);
}

look();
