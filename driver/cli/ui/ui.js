// Draws what /ui/data says, every two seconds. Names of others become text, never markup.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const MOST_NODES = 200;
  const MOST_CLAIMS = 500;
  const byId = (id) => document.getElementById(id);
  const details = byId("details");
  const hint = details.textContent;
  let data = null;
  let tag = "";

  const make = (name, attributes, ...content) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) { made.setAttribute(key, value); }
    }
    made.append(...content);
    return made;
  };
  const cardId = (node, device) => `card/${node}/${device}`;
  const nodeId = (node) => `node/${node}`;
  const claimId = (claim) => `claim/${claim}`;
  const link = (id, words) => make("a", { href: `#${encodeURIComponent(id)}`, "data-to": id }, words);
  const gib = (mib) => `${(mib / 1024).toFixed(1)} GiB`;
  const short = (model) => model.replace(/^(NVIDIA|AMD) /, "");

  // Capacity

  const modelRow = (one) => {
    const shut = Math.max(0, one.memoryMiB - one.memoryUsedMiB - one.memoryFreeMiB);
    const parts = [
      ["used", one.memoryUsedMiB, "in use"],
      ["rest", one.memoryFreeMiB - one.memoryWholeMiB, "free on cards in use"],
      ["whole", one.memoryWholeMiB, "on free cards"],
      ["shut", shut, "closed"],
    ];
    const words = parts.filter(([, mib]) => mib > 0).map(([, mib, what]) => `${gib(mib)} ${what}`);
    const bar = make("div", { class: "bar", role: "img", "aria-label": words.join(", "), title: words.join(", ") },
      ...parts.map(([kind, mib]) => {
        const part = make("span", { class: kind });
        part.style.width = one.memoryMiB ? `${100 * mib / one.memoryMiB}%` : "0";
        return part;
      }));
    const numbers = [one.physical, one.allocatable, one.committed, one.largestFree];
    return make("tr", {}, make("th", { scope: "row" }, short(one.model) || "-"),
      ...numbers.map((number) => make("td", { class: "number" }, String(number))),
      make("td", {}, bar), make("td", { class: "soft" }, `${gib(one.memoryUsedMiB)} of ${gib(one.memoryMiB)} in use`));
  };

  // Cards

  const look = (node, card) => {
    const name = `${node}, GPU ${card.index < 0 ? card.device : card.index}, ${card.model || card.device}`;
    const used = card.memoryMiB ? Math.round(100 * card.memoryUsedMiB / card.memoryMiB) : 0;
    const of = `${gib(card.memoryUsedMiB)} of ${gib(card.memoryMiB)}`;
    const all = card.shares === 1 && card.memoryMiB > 0 && card.memoryMiB === card.memoryUsedMiB;
    let kind = card.use, sign = "·", fill = 0, words = `free, ${gib(card.memoryMiB)}`;
    if (card.use === "whole" || (card.use === "shared" && all)) {
      kind = "whole"; sign = "■"; fill = 100; words = `one claim has all of its ${gib(card.memoryMiB)}`;
    } else if (card.use === "shared") {
      sign = String(card.shares); fill = used;
      words = `${card.shares} ${card.shares === 1 ? "claim has" : "claims have"} ${of}`;
    } else if (card.use === "mig") {
      sign = `▚${card.migInUse.length}`; fill = used;
      words = `divided (MIG), in use: ${card.migInUse.join(", ") || "nothing"}`;
    }
    if (card.taints.length) {
      kind += " closed"; sign += "×"; words += `; closed by ${card.taints.join(", ")}`;
      if (card.use === "free") { sign = "×"; }
    }
    return { kind, sign, fill, words: `${name}: ${words}` };
  };

  const cell = (node, card) => {
    const drawn = look(node.node, card);
    const made = make("div", {
      class: `card ${drawn.kind}`, role: "img", tabindex: -1,
      "aria-label": drawn.words, id: cardId(node.node, card.device),
    }, drawn.sign);
    made.style.setProperty("--used", `${drawn.fill}%`);
    made.claims = card.claims;
    return made;
  };

  const row = (node) => {
    const cells = node.cards.map((card, at) => {
      const before = node.cards[at - 1];
      const apart = before
        && (before.nvlinkGroup !== card.nvlinkGroup || before.numaNode !== card.numaNode);
      return make("td", { role: "gridcell", class: apart ? "gap" : null }, cell(node, card));
    });
    const models = [...new Set(node.cards.map((card) => short(card.model)))].join(", ");
    const numbers = `${node.free}/${node.cards.length} free, ${node.largestFree} linked`
      + (node.pending ? `, ${node.pending} pending` : "") + (node.note ? `; ${node.note}` : "");
    return make("tr", { role: "row", id: nodeId(node.node) },
      make("th", { scope: "row" }, link(nodeId(node.node), node.node)),
      make("td", { class: "numbers" }, models), make("td", { class: "numbers" }, numbers), ...cells);
  };

  // Claims

  const age = (created) => {
    const passed = Math.max(0, (Date.now() - Date.parse(created)) / 1000);
    if (!Number.isFinite(passed)) { return "-"; }
    for (const [letter, size, most] of [["s", 1, 120], ["m", 60, 180], ["h", 3600, 48]]) {
      if (passed < most * size) { return `${Math.floor(passed / size)}${letter}`; }
    }
    return `${Math.floor(passed / 86400)}d`;
  };

  const device = (claim, one) => {
    const found = one.index < 0 ? one.device : `GPU ${one.index}`;
    const part = one.profile ? ` ${one.profile}` : one.shareID ? ` ${gib(one.memoryMiB)}` : "";
    const card = cardOf.get(`${claim.node}/${one.device}`) || one.device;
    return make("span", { class: "device" }, link(cardId(claim.node, card), found), part, " ");
  };

  const claimRow = (claim) => {
    const key = `${claim.namespace}/${claim.name}`;
    const cells = [
      claim.state,
      claim.node ? link(nodeId(claim.node), claim.node) : "-",
      claim.devices.length ? claim.devices.map((one) => device(claim, one)) : "-",
      claim.policy, claim.pod || "-", age(claim.created),
    ];
    return make("tr", { id: claimId(key), tabindex: -1 }, make("th", { scope: "row" }, key),
      ...cells.map((content) => make("td", {}, ...[content].flat())));
  };

  // Which card an instance is drawn in: the one of the same node that its claim holds.
  let cardOf = new Map();
  const findCards = () => {
    cardOf = new Map();
    const held = new Map();
    for (const node of data.nodes) {
      for (const card of node.cards) {
        cardOf.set(`${node.node}/${card.device}`, card.device);
        for (const claim of card.claims) { held.set(`${node.node}/${claim}/${card.index}`, card.device); }
      }
    }
    for (const claim of data.claims) {
      for (const one of claim.devices) {
        const key = `${claim.node}/${one.device}`;
        const card = held.get(`${claim.node}/${claim.namespace}/${claim.name}/${one.index}`);
        if (!cardOf.has(key) && card) { cardOf.set(key, card); }
      }
    }
  };

  // Drawing

  const wanted = (name) => byId(`${name}-filter`).value.trim().toLowerCase();
  const shown = (name, all, words, most) => {
    const text = wanted(name);
    const found = text ? all.filter((one) => words(one).toLowerCase().includes(text)) : all;
    const rest = found.length > most ? `, the first ${most} are shown` : "";
    byId(`${name}-found`).textContent = text || rest ? `${found.length} of ${all.length}${rest}` : "";
    return found.slice(0, most);
  };

  const draw = () => {
    const focused = document.activeElement && document.activeElement.id;
    const total = data.total;
    const waits = total.gated + total.nominated + total.waiting;
    byId("total").textContent =
      `${total.cards} cards on ${total.nodes} nodes: ${total.free} free, ${total.inUse} in use, `
      + `${total.tainted} closed. ${waits === 1 ? "1 pod waits" : `${waits} pods wait`}. `
      + `${Math.round(total.fragmentation)} % of the free memory is on cards in use.`;
    byId("models").replaceChildren(...total.capacity.map(modelRow));
    findCards();
    const nodes = shown("nodes", data.nodes,
      (node) => [node.node, node.note, ...node.cards.flatMap((card) => [card.model, ...card.claims])].join(" "),
      MOST_NODES);
    byId("grid").replaceChildren(...nodes.map(row));
    const claims = shown("claims", data.claims,
      (one) => [one.namespace, one.name, one.state, one.node, one.policy, one.pod].join(" "),
      MOST_CLAIMS);
    byId("rows").replaceChildren(...claims.map(claimRow));
    const stop = (focused && byId(focused) && byId(focused).matches(".card") && byId(focused))
      || document.querySelector("#grid .card");
    if (stop) { stop.tabIndex = 0; }
    if (focused && byId(focused)) { byId(focused).focus({ preventScroll: true }); }
  };

  // One thing leads to another

  const clear = () => {
    document.querySelectorAll(".marked").forEach((one) => one.classList.remove("marked"));
  };
  const tell = (words, links) => details.replaceChildren(words, ...(links.length ? ["\n", ...links] : []));
  const showCard = (card) => {
    clear();
    const claims = card.claims || [];
    tell(card.getAttribute("aria-label"), claims.map((key) => link(claimId(key), key)));
    claims.map((key) => byId(claimId(key))).filter(Boolean)
      .forEach((one) => one.classList.add("marked"));
  };
  const showClaim = (row) => {
    clear();
    row.querySelectorAll("a[data-to]").forEach((one) => {
      const target = byId(one.dataset.to);
      if (target && target.matches(".card")) { target.classList.add("marked"); }
    });
  };
  const showNode = (name) => {
    const node = data && data.nodes.find((one) => one.node === name);
    if (!node) { return; }
    const claims = [...new Set(node.cards.flatMap((card) => card.claims))];
    tell(`${name}: ${node.free} of ${node.cards.length} cards free; claims:`,
      claims.length ? claims.map((key) => link(claimId(key), key)) : ["none"]);
    clear();
    claims.map((key) => byId(claimId(key))).filter(Boolean)
      .forEach((one) => one.classList.add("marked"));
  };

  // What a filter or the length of the list hides is brought back when somebody wants to go there.
  const uncover = (id) => {
    if (byId(id) || !data) { return; }
    const [kind, ...rest] = id.split("/");
    const name = kind === "claim" ? rest.join("/") : rest[0];
    const filter = byId(kind === "claim" ? "claims-filter" : "nodes-filter");
    filter.value = kind === "claim" ? name.split("/").pop() : name;
    draw();
  };
  const go = (id) => {
    uncover(id);
    const target = byId(id);
    if (!target) { return; }
    target.scrollIntoView({ block: "nearest" });
    if (id.startsWith("node/")) {
      target.querySelector("a").focus();
      showNode(id.slice("node/".length));
    } else {
      target.focus();
      target.classList.add("marked");
    }
  };
  document.addEventListener("click", (event) => {
    const from = event.target.closest("a[data-to]");
    if (!from) { return; }
    event.preventDefault();
    history.replaceState(null, "", `#${encodeURIComponent(from.dataset.to)}`);
    go(from.dataset.to);
  });
  for (const event of ["focusin", "pointerover"]) {
    document.addEventListener(event, ({ target }) => {
      const card = target.closest("#grid .card");
      const claim = target.closest("#rows tr");
      if (card) { showCard(card); } else if (claim) { showClaim(claim); }
    });
  }
  document.addEventListener("focusout", ({ target }) => {
    if (target.matches && target.matches("#grid .card")) { clear(); }
  });

  // One stop of the Tab key for all cards; arrows among them.
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  byId("grid").addEventListener("keydown", (event) => {
    const rows = [...byId("grid").rows].map((one) => [...one.querySelectorAll(".card")]);
    const y = rows.findIndex((one) => one.includes(event.target));
    if (y < 0) { return; }
    const x = rows[y].indexOf(event.target);
    let next;
    if (event.key === "Home") { next = rows[y][0]; }
    else if (event.key === "End") { next = rows[y][rows[y].length - 1]; }
    else if (event.key === "Enter") {
      const first = (event.target.claims || [])[0];
      if (first) { uncover(claimId(first)); next = byId(claimId(first)); }
    } else if (event.key in steps) {
      const [dy, dx] = steps[event.key];
      const row = rows[y + dy];
      next = row && row[dx ? x + dx : Math.min(x, row.length - 1)];
    } else { return; }
    event.preventDefault();
    if (next) {
      if (next.matches(".card")) { event.target.tabIndex = -1; next.tabIndex = 0; }
      next.focus();
    }
  });

  for (const name of ["nodes", "claims"]) {
    byId(`${name}-filter`).addEventListener("input", () => data && draw());
  }

  // Live

  const fresh = byId("fresh");
  let last = null;
  const lookAgain = async () => {
    if (document.visibilityState === "hidden") { return; }
    try {
      const answer = await fetch("/ui/data", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status === 200) {
        const first = data === null;
        data = await answer.json();
        tag = answer.headers.get("ETag") || "";
        draw();
        if (first && location.hash.length > 1) { go(decodeURIComponent(location.hash.slice(1))); }
      } else if (answer.status !== 304) { throw new Error(`status ${answer.status}`); }
      last = new Date();
      fresh.textContent = `live; as of ${last.toLocaleTimeString()}`;
      fresh.classList.remove("late");
      fresh.removeAttribute("role");
    } catch (error) {
      const since = last ? `since ${last.toLocaleTimeString()}` : "yet";
      fresh.textContent = `no answer from the controller ${since} (${error.message}); trying again`;
      fresh.classList.add("late");
      fresh.setAttribute("role", "alert");
    }
  };
  const loop = async () => { await lookAgain(); setTimeout(loop, EVERY_MS); };
  document.addEventListener("visibilitychange", lookAgain);
  loop();
})();
