// All locks, live. Words of other users only ever become text, or an address of http or https.
// Elements are changed only if they must be, so that text stays selected, and the focus stays.
"use strict";

const EVERY = 2000;
const HISTORY_EVERY = 4000; // at most; former runs cost the store more
const SPANS = [60, 600, 3600, 21600, 86400, 604800]; // seconds
const LANES = 4; // that runs side by side have
const WAITS = 16; // percent of the height, below them
const MANY = 20; // locks; more are a compact row each
const KEY_END = 12; // characters; a longer key has so many at its end that stay, or its half

const cards = new Map(); // key: its elements
let locks = [];
let runs = new Map(); // key: those that have ended, the oldest first
let seen = null;
let ahead = 0; // ms that the store's clock is before this one
let place = "";
let historyFor = null; // the state of locks that the runs belong to
let historyAt = 0;

const byId = (id) => document.getElementById(id);
const SVG = byId("ticks").namespaceURI;

// -- text -----------------------------------------------------------------------------------------

// Characters that control something, turn the direction of writing, or cannot be seen, are spelled.
const TRICKS = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u2064\\u2066-\\u2069\\ufeff]", "g");

function plain(text) {
    return String(text).replace(TRICKS, (c) =>
        "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

const two = (n) => String(n).padStart(2, "0");

function duration(ms) {
    const s = Math.round(ms / 1000);
    if (ms < 1000) return Math.max(0, Math.round(ms)) + "ms";
    if (s < 60) return s + "s";
    if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
    const m = Math.round(s / 60);
    if (m < 1440) return Math.floor(m / 60) + "h" + two(m % 60) + "m";
    const h = Math.round(m / 60);
    return Math.floor(h / 24) + "d" + two(h % 24) + "h";
}

const clock = (date) => two(date.getHours()) + ":" + two(date.getMinutes());
const day = (date) => date.getFullYear() + "-" + two(date.getMonth() + 1) + "-" +
    two(date.getDate());
const fullClock = (date) => clock(date) + ":" + two(date.getSeconds());

// The time of day, with the date where it is another day.
function moment(ms, seconds) {
    const date = new Date(ms);
    const time = seconds ? fullClock(date) : clock(date);
    return day(date) === day(new Date()) ? time : day(date) + " " + time;
}

function who(party) {
    const name = (party.user || "") + (party.host ? "@" + party.host : "");
    return (name || "someone") + (party.command ? " (" + party.command + ")" : "");
}

function whoInFull(party) {
    return who(party) + (party.pid ? " pid " + party.pid : "");
}

// "paused by ada until 21:51 (1h59m left): database upgrade"
function decision(what, by) {
    return what + " by " + (by.by || who(by)) + " until " + moment(Date.now() + by.left_ms) + " (" +
        duration(by.left_ms) + " left): " + by.reason;
}

// -- elements that change as little as they can ---------------------------------------------------

function setText(element, text) {
    const shown = plain(text);
    if (element.textContent !== shown) element.textContent = shown;
}

function setAttribute(element, name, value) {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

function address(word) {
    if (!/^https?:/i.test(word) || word.search(TRICKS) >= 0) return null;
    try {
        const url = new URL(word);
        return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
    } catch (error) {
        return null;
    }
}

// A text, of which addresses are links.
function setLinked(element, text) {
    if (element.textContent === plain(text)) return;
    element.replaceChildren(...text.split(/(\s+)/).map((word) => {
        const to = address(word);
        if (!to) return plain(word);
        const link = document.createElement("a");
        link.href = to;
        link.rel = "noopener noreferrer";
        link.target = "_blank";
        link.textContent = plain(word);
        return link;
    }));
}

function add(parent, name, className) {
    const made = parent.appendChild(document.createElement(name));
    if (className) made.className = className;
    return made;
}

// A long key breaks behind these characters, if it can.
function addKey(element, text) {
    for (const part of text.split(/(?<=[/._:-])/)) {
        element.append(part);
        add(element, "wbr");
    }
}

// A long one in two parts, of which the first one is cut at its end if there is no room.
function setKey(element, key) {
    const characters = [...plain(key)];
    const long = characters.length > KEY_END;
    const end = characters.length - (long ? Math.min(KEY_END, characters.length >> 1) : 0);
    addKey(add(element, "span", "start"), characters.slice(0, end).join(""));
    addKey(add(element, "span", "end"), characters.slice(end).join(""));
    setAttribute(element, "title", characters.join(""));
}

// As many children as texts: those that are there are used again.
function setLines(parent, texts, name) {
    while (parent.children.length > texts.length) parent.lastChild.remove();
    while (parent.children.length < texts.length) add(parent, name);
    texts.forEach((text, i) => setLinked(parent.children[i], text));
}

// -- the time line --------------------------------------------------------------------------------

const now = () => Date.now() + ahead;

function looksOf(run) {
    if (!run.result) return "run";
    if (run.result === "success") return "run ok";
    return ["revoked", "expired", "lost"].includes(run.result) ? "run odd" : "run bad";
}

function told(run, held) {
    return whoInFull(run) + ", " + moment(Date.parse(run.since), true) + ", for " +
        (held === null ? "an unknown time" : duration(held)) +
        (run.waited_ms >= 1000 ? ", waited " + duration(run.waited_ms) : "") +
        ": " + (run.outcome || "ended") +
        (run.revoked_by ? " by " + run.revoked_by : "") + (run.reason ? ": " + run.reason : "") +
        (run.label ? ", " + run.label : "");
}

// Former runs, holders and those that wait, as pieces of time.
function pieces(lock, past) {
    const made = [];
    for (const run of past) {
        const from = Date.parse(run.since), to = from + (run.held_ms || 0);
        made.push({from, to, waited: run.waited_ms || 0, looks: looksOf(run),
            text: told(run, run.held_ms)});
    }
    for (const holder of outer(lock)) {
        if (holder.since === null) continue;
        const from = now() - holder.age_ms, kept = holder.kept || holder.reserved;
        made.push({from, to: now(), waited: holder.waited_ms || 0,
            looks: kept ? "run keeps" : "run now", text: partyText("holds", holder)});
    }
    for (const waiter of lock.waiters)
        made.push({from: now(), to: now(), waited: waiter.age_ms, looks: "",
            text: partyText("waits", waiter)});
    return made;
}

// Gives each run a lane, so that none hides another as long as there are lanes. Clocks are not
// exact.
function assignLanes(all) {
    const ends = [];
    for (const piece of all.sort((a, b) => a.from - b.from)) {
        if (!piece.looks) continue;
        let lane = ends.findIndex((end) => end <= piece.from + 50);
        if (lane < 0) lane = ends.length < LANES ? ends.length : LANES - 1;
        ends[lane] = Math.max(ends[lane] || 0, piece.to);
        piece.lane = lane;
    }
    return Math.max(1, ends.length);
}

// From "top" on, so high: in percent.
function setBar(svg, n, from, to, top, height, looks, text, span) {
    let bar = svg.children[n];
    if (!bar) {
        bar = svg.appendChild(document.createElementNS(SVG, "rect"));
        bar.appendChild(document.createElementNS(SVG, "title"));
    }
    const at = Math.max(0, 1 - (now() - from) / (span * 1000));
    const until = Math.min(1, 1 - (now() - to) / (span * 1000));
    setAttribute(bar, "x", (at * 100).toFixed(2) + "%");
    setAttribute(bar, "width", Math.max(.25, (until - at) * 100).toFixed(2) + "%");
    setAttribute(bar, "y", top.toFixed(1) + "%");
    setAttribute(bar, "height", height.toFixed(1) + "%");
    setAttribute(bar, "class", looks);
    setText(bar.firstChild, text);
}

// A run that failed is drawn higher than one that did not: not everyone sees colours.
function setRun(svg, n, piece, lanes, span) {
    const height = (100 - WAITS) / lanes, flat = /bad|odd/.test(piece.looks) ? 0 : .25;
    setBar(svg, n, piece.from, piece.to, height * (piece.lane + flat), height * (.95 - flat),
        piece.looks, piece.text, span);
}

function drawStrip(svg, lock, past, span) {
    const all = pieces(lock, past), lanes = assignLanes(all), start = now() - span * 1000;
    let bars = 0;
    for (const piece of all) {
        if (piece.to < start) continue;
        if (piece.waited >= 1000)
            setBar(svg, bars++, piece.from - piece.waited, piece.from, 100 - WAITS, WAITS, "wait",
                piece.text, span);
        if (piece.looks) setRun(svg, bars++, piece, lanes, span);
    }
    while (svg.children.length > bars) svg.lastChild.remove();
    const ended = past.length === 1 ? "1 former run" : past.length + " former runs";
    setAttribute(svg, "aria-label", "time line: " + ended);
}

// The one that was chosen; or the shortest that shows half of all runs.
function currentSpan() {
    const chosen = Number(byId("span").value);
    if (chosen) return chosen;
    const ages = [...runs.values()].flat().map((run) => now() - Date.parse(run.since));
    for (const lock of locks) for (const holder of lock.holders) ages.push(holder.age_ms);
    ages.sort((a, b) => a - b);
    const half = ages.length > 0 ? ages[Math.floor(ages.length / 2)] : 0;
    return SPANS.find((span) => half * 1.2 <= span * 1000) || SPANS[SPANS.length - 1];
}

const STEPS = [15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400];

function tickText(date, step) {
    if (step >= 43200000) return day(date).slice(5);
    return step < 60000 ? fullClock(date) : clock(date);
}

function drawTicks(span) {
    const svg = byId("ticks"), width = svg.clientWidth || 400;
    const most = Math.max(2, Math.floor(width / 90));
    const step = (STEPS.find((s) => span / s <= most) || 172800) * 1000;
    const zone = new Date().getTimezoneOffset() * 60000, end = Date.now();
    const labels = [];
    let at = Math.ceil((end - span * 1000 - zone) / step) * step + zone;
    for (; at <= end; at += step) {
        const share = 1 - (end - at) / (span * 1000);
        if (share * width > 20 && (1 - share) * width > 60)
            labels.push([share, tickText(new Date(at), step)]);
    }
    labels.push([1, "now"]);
    while (svg.children.length > labels.length) svg.lastChild.remove();
    labels.forEach(([share, label], n) => {
        const text = svg.children[n] || svg.appendChild(document.createElementNS(SVG, "text"));
        setAttribute(text, "x", (share * 100).toFixed(2) + "%");
        setAttribute(text, "y", "80%");
        setAttribute(text, "text-anchor", share < 1 ? "middle" : "end");
        setText(text, label);
    });
}

// -- locks ----------------------------------------------------------------------------------------

// Holders that nest in another one hold the lock with that one.
function outer(lock) {
    return lock.holders.filter((holder) =>
        !lock.holders.some((other) => holder.owner.startsWith(other.owner + ".")));
}

const oldest = (parties) => Math.max(0, ...parties.map((party) => party.age_ms));
const inUse = (lock) => lock.holders.length > 0 || lock.waiters.length > 0 || Boolean(lock.paused);

// The most urgent lock comes first, as in rlock top; free locks are at the end, by name.
function compare(a, b) {
    return inUse(b) - inUse(a) || (b.waiters.length > 0) - (a.waiters.length > 0) ||
        oldest(b.waiters) - oldest(a.waiters) || oldest(b.holders) - oldest(a.holders) ||
        (a.key < b.key ? -1 : 1);
}

// The state, as a class and in words.
function stateOf(lock) {
    const holders = outer(lock);
    if (holders.length === 0) return lock.paused ? ["paused", "paused"] : ["free", "free"];
    if (holders.every((holder) => holder.reserved)) return ["reserved", "reserved"];
    if (holders.every((holder) => holder.kept)) return ["kept", "kept"];
    if (lock.mode === "limit")
        return ["held", holders.length + (lock.limit ? " of " + lock.limit : "") + " held"];
    return ["held", lock.mode === "shared" ? holders.length + " read" : "held"];
}

function partyText(what, party) {
    const since = party.since === null ? "" :
        ", since " + moment(Date.parse(party.since), true) + " (" + duration(party.age_ms) + ")";
    return what + " " + whoInFull(party) + ", " + (party.mode || "exclusive") + since +
        (party.label ? ", " + party.label : "");
}

function bannerText(lock) {
    const texts = lock.paused ? [decision("paused" +
        (lock.paused.glob ? " (" + lock.paused.glob + ")" : ""), lock.paused)] : [];
    for (const holder of outer(lock)) {
        if (holder.reserved) {
            texts.push(decision("reserved", {...holder, left_ms: holder.lease_left_ms,
                command: null, reason: holder.label || ""}));
        } else if (holder.kept) {
            texts.push("kept until " + moment(Date.now() + holder.lease_left_ms) + " (" +
                duration(holder.lease_left_ms) + " left); its command has ended");
        }
    }
    return texts.join(" · ");
}

function labelOf(lock) {
    const holders = outer(lock);
    return holders.length === 1 && !holders[0].reserved && holders[0].label || "";
}

function whoText(lock, past) {
    const holders = outer(lock);
    if (holders.length === 1) return who(holders[0]);
    if (holders.length > 1) return holders.length + " holders: " +
        [...new Set(holders.map((holder) => holder.host || who(holder)))].join(", ");
    if (past.length === 0) return "";
    const last = past[past.length - 1];
    return "last: " + who(last) + ", " + (last.outcome || "ended") + " at " +
        moment(Date.parse(last.since) + (last.held_ms || 0));
}

// How the last run ended, as a class.
function lastEnd(past) {
    const looks = past.length > 0 ? looksOf(past[past.length - 1]) : "";
    return looks === "run bad" ? " failed" : looks === "run odd" ? " lost" : "";
}

function newCard(key) {
    const card = {};
    card.item = document.createElement("li");
    const row = add(card.item, "div", "row");
    const name = add(row, "div", "key");
    card.button = add(add(name, "h2"), "button");
    card.button.type = "button";
    setAttribute(card.button, "aria-expanded", false);
    setKey(card.button, key);
    card.state = add(name, "div", "state");
    const by = add(row, "div", "by");
    card.who = add(by, "div", "who");
    card.label = add(by, "div", "label");
    const times = add(row, "div", "times");
    card.age = add(times, "div", "age time");
    card.queue = add(times, "div", "queue");
    card.strip = row.appendChild(document.createElementNS(SVG, "svg"));
    card.strip.setAttribute("class", "strip");
    card.strip.setAttribute("role", "img");
    card.banner = add(row, "div", "banner");
    card.details = add(card.item, "div", "details");
    card.details.hidden = true;
    card.parties = add(card.details, "ol");
    setText(add(card.details, "h3"), "Last runs, the newest first");
    card.runs = add(card.details, "ol");
    card.button.addEventListener("click", () => {
        if (String(getSelection()) !== "") return; // the user selects the name
        card.details.hidden = !card.details.hidden;
        setAttribute(card.button, "aria-expanded", !card.details.hidden);
        draw();
    });
    return card;
}

function drawDetails(card, lock, past) {
    setLines(card.parties, [
        ...lock.holders.map((holder) => partyText(holder.kept ? "kept for" : "holder", holder)),
        ...lock.waiters.map((waiter) => partyText("waiter " + waiter.position, waiter))], "li");
    setLines(card.runs, past.map((run) => told(run, run.held_ms)).reverse(), "li");
    card.runs.previousSibling.hidden = past.length === 0;
}

function drawCard(card, lock, past, span) {
    const [looks, state] = stateOf(lock);
    const waiting = lock.waiters.length;
    const known = lock.holders.some((holder) => holder.since !== null);
    setAttribute(card.item, "class", "lock " + looks + (waiting > 0 ? " waited" : "") +
        (looks === "free" ? lastEnd(past) : ""));
    setText(card.state, state + (lock.paused && looks !== "paused" ? ", paused" : ""));
    setLinked(card.who, whoText(lock, past));
    setLinked(card.label, labelOf(lock));
    setText(card.age, known ? duration(oldest(lock.holders)) : "");
    setText(card.queue, waiting > 0 ? waiting + " waiting" : "");
    setLinked(card.banner, bannerText(lock));
    setAttribute(card.state, "title", plain(bannerText(lock)));
    drawStrip(card.strip, lock, past, span);
    if (!card.details.hidden) drawDetails(card, lock, past);
}

// -- all of them ----------------------------------------------------------------------------------

const FREE = {mode: null, limit: null, paused: null, holders: [], waiters: []};

// The locks that are in use, and those that were.
function shown() {
    const there = new Map(locks.map((lock) => [lock.key, lock]));
    for (const key of runs.keys())
        if (!there.has(key)) there.set(key, {key, ...FREE});
    return [...there.values()].sort(compare);
}

// Puts the cards in this order. While something in them is selected, those that are there stay.
function arrange(list, items) {
    const selection = getSelection();
    const still = !selection.isCollapsed && list.contains(selection.anchorNode);
    const focused = document.activeElement;
    let at = list.firstElementChild;
    for (const item of items) {
        if (item === at) at = at.nextElementSibling;
        else if (!still || item.parentNode !== list) list.insertBefore(item, at);
    }
    if (focused && focused !== document.activeElement && list.contains(focused)) focused.focus();
}

// Whether what is typed into the filter is in the name of a lock, or in what is said of who has it,
// waits for it, or had it last.
function matches(lock, past) {
    const wanted = byId("filter").value.trim().toLowerCase();
    const words = [lock.key, whoText(lock, past), labelOf(lock), ...lock.holders.map(who),
        ...lock.waiters.map(who)];
    return words.some((text) => text.toLowerCase().includes(wanted));
}

function draw() {
    const span = currentSpan(), all = shown();
    let visible = 0;
    for (const lock of all) {
        const past = runs.get(lock.key) || [];
        if (!cards.has(lock.key)) cards.set(lock.key, newCard(lock.key));
        const card = cards.get(lock.key);
        card.item.hidden = !matches(lock, past);
        if (card.item.hidden) continue;
        drawCard(card, lock, past, span);
        visible++;
    }
    byId("locks").classList.toggle("many", visible > MANY);
    setText(byId("matches"), visible < all.length ? visible + " of " + all.length : "");
    const keys = new Set(all.map((lock) => lock.key));
    for (const [key, card] of cards) {
        if (keys.has(key)) continue;
        card.item.remove();
        cards.delete(key);
    }
    arrange(byId("locks"), all.map((lock) => cards.get(lock.key).item));
    byId("above").hidden = byId("axis").hidden = all.length === 0;
    drawTicks(span);
}

function summary() {
    const used = locks.filter(inUse);
    const waiting = used.reduce((sum, lock) => sum + lock.waiters.length, 0);
    const count = used.length === 0 ? "no locks" :
        used.length + (used.length === 1 ? " lock" : " locks");
    return count + (waiting > 0 ? ", " + waiting + " waiting" : "");
}

// A screen reader reads this only when it changes, so no time of day is in it.
function say(text, away) {
    document.body.classList.toggle("away", away);
    setText(byId("summary"), text);
    const title = (away ? "out of reach" : text) + " – rlock" + (place ? " – " + place : "");
    if (document.title !== plain(title)) document.title = plain(title);
}

// The last state stays on the page.
function sayAway(why) {
    say("out of reach" + (seen ? " since " + fullClock(seen) : "") + ": " + why, true);
}

// -- asking ---------------------------------------------------------------------------------------

class Away extends Error {}

async function get(path) {
    let response, answer = {error: "a password is asked for: load this page again"};
    try {
        response = await fetch(path, {signal: AbortSignal.timeout(20000)});
        if (response.status !== 401 && response.status !== 429) answer = await response.json();
    } catch (error) {
        throw new Away("rlock serve does not answer");
    }
    if (!response.ok) throw new Away(answer.error);
    return answer;
}

// Changes whenever a run may have ended.
function stateOfAll() {
    return locks.map((lock) => [lock.key, lock.fence, lock.holders.map((h) => h.owner)].join(" "))
        .join("\n");
}

async function lookBack() {
    const state = stateOfAll();
    if (state === historyFor || Date.now() - historyAt < HISTORY_EVERY) return;
    const answer = await get("history.json");
    historyFor = state;
    historyAt = Date.now();
    runs = new Map();
    for (const run of answer) {
        if (!runs.has(run.key)) runs.set(run.key, []);
        runs.get(run.key).push(run);
    }
}

function take(answer) {
    const pauses = answer.filter((row) => row.key === null);
    locks = answer.filter((row) => row.key !== null);
    seen = new Date();
    for (const lock of locks)
        for (const party of lock.holders)
            if (party.since !== null) ahead = Date.parse(party.since) + party.age_ms - Date.now();
    setLines(byId("banners"),
        pauses.map((row) => row.glob + ": " + decision("paused", row.paused)), "li");
}

async function look() {
    try {
        if (!place) {
            const about = await get("about.json");
            place = about.store + (about.prefix === "rlock" ? "" : " prefix " + about.prefix);
            setText(byId("place"), place);
        }
        take(await get("locks.json"));
        await lookBack();
        draw();
        say(summary(), false);
    } catch (error) {
        if (!(error instanceof Away)) throw error;
        sayAway(error.message);
    } finally {
        setTimeout(look, EVERY);
    }
}

// The length of the time line is a part of the page's address, for bookmarks.
const wanted = location.hash.slice(1);
if ([...byId("span").options].some((option) => option.value === wanted))
    byId("span").value = wanted;
byId("span").addEventListener("change", () => {
    history.replaceState(null, "", "#" + byId("span").value);
    draw();
});
byId("filter").addEventListener("input", draw);
addEventListener("resize", draw);
setInterval(() => setText(byId("clock"), fullClock(new Date())), 1000);
look();
