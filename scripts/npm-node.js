// Runs after `npm ci`, on any Node.js: says in one line that npm's own one is older than installed packages need.
import { readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const [, needed] = engines.node.match(/([\d.]+)/);
const [, own] = (process.env.npm_config_user_agent ?? "").match(/node\/v([\d.]+)/) ?? [];
const numbers = (version) => version.split(".").map(Number);
const [[major, minor], [ownMajor, ownMinor]] = [needed, own ?? needed].map(numbers);
if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
  console.error(
    `legation: npm runs on Node.js ${own}, older than ${needed}: that does for this clone, whose scripts run on its own ` +
      `Node.js ${process.versions.node}; an installed package needs ${needed}.`,
  );
}
