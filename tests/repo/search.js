// The search of a built site, as its pages run it: the site's own worker and index, outside of a browser.
//   node search.js SITE QUERY...   prints, for each query, the pages of its results, the best first
const fs = require("fs");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const folder = `${site}/assets/javascripts/workers/`;
const worker = fs.readFileSync(folder + fs.readdirSync(folder).find((name) => name.endsWith(".js")), "utf8");
const { config, docs } = JSON.parse(fs.readFileSync(`${site}/search/search_index.json`, "utf8"));

let listener, answer;
const scope = { addEventListener: (_, given) => (listener = given), postMessage: (message) => answer(message) };
scope.self = scope.window = scope.globalThis = scope;
vm.runInNewContext(worker, scope);

// The kinds of messages: 0 sets up, 2 asks.
const ask = (type, data) => new Promise((resolve) => { answer = resolve; listener({ data: { type, data } }); });

(async () => {
  await ask(0, { config, docs, options: { suggest: false } });
  for (const query of queries) {
    const { items } = (await ask(2, query)).data;
    console.log(JSON.stringify(items.map(([page]) => page.location.split("#")[0])));
  }
})();
