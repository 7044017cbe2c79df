// Runs the script of an exported page on the parts of a document that it uses, and presses keys.
//   node press_keys.js PAGE KEY...
// Prints, at first and after each key, the number of tokens that the first lane shows and the sentence for screen readers.
"use strict";
const page = require("fs").readFileSync(process.argv[2], "utf8");
const elements = new Map();
const listeners = [];

class Element {
  constructor(tag) {
    this.tagName = tag.toUpperCase();
    this.children = [];
    this.textContent = "";
  }
  set id(id) { elements.set(id, this); }
  append(child) { this.children.push(child); }
  add(option) { this.append(option); }
  replaceChildren(...children) { this.children = children; }
  setAttribute(name, value) { this[name] = value; }
  insertRow() {
    const row = new Element("tr");
    this.append(row);
    return row;
  }
}

const [markup, rest] = page.split('<script type="application/json"');
for (const [, tag, id] of markup.matchAll(/<(\w+)[^>]*\bid="(\w+)"/g)) new Element(tag).id = id;
const data = new Element("script");
data.id = "data";
data.textContent = rest.slice(rest.indexOf(">") + 1, rest.indexOf("</script>"));
const script = page.slice(page.lastIndexOf("<script>") + "<script>".length, page.lastIndexOf("</script>"));

const document = {
  getElementById: (id) => elements.get(id) || null,
  createElement: (tag) => new Element(tag),
  addEventListener: (type, listener) => { if (type === "keydown") listeners.push(listener); },
};
const report = () =>
  console.log(document.getElementById("text0").children.length + " " + document.getElementById("words").textContent);

new Function("document", "Option", script)(document, function Option(text) { this.textContent = text; });
report();
for (const key of process.argv.slice(3)) {
  const event = { key, target: new Element("body"), preventDefault() {} };
  for (const listener of listeners) listener(event);
  report();
}
const headers = ["figures", "repeats"].flatMap((table) => elements.get(table).children[0].children);
if (!headers.every((cell) => cell.tagName === "TH" && cell.scope === "col")) throw new Error("a column without header");
