import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";

/** The packets that are dropped without a sign, as seen from the namespace. */
export interface Dropped {
  readonly direction: "in" | "out" | "both";
  /** Address of this machine. Default: all. */
  readonly address?: string;
}

/**
 * A network namespace of Linux with one link to this machine and no other: nothing in it can be connected to from here, as
 * behind NAT, when it listens on its own loopback address.
 */
export interface NetworkNamespace extends Disposable {
  readonly name: string;
  /** Two addresses of this machine, for processes in the namespace. */
  readonly addresses: readonly [string, string];
  /** Goes before a command that is to run in the namespace. */
  readonly within: readonly string[];
  /** Names that resolve in the namespace, with their addresses. Replaces those before. */
  resolve(names: Readonly<Record<string, string>>): void;
  /** Drops packets beside those that are dropped already. */
  drop(dropped: Dropped): void;
  /** Drops no packet any more. */
  heal(): void;
}

const FOLDER = "/etc/netns";
// 198.18.0.0/15 is for tests of networks (RFC 2544), so no route to anything leads there.
const PREFIX = "198.18";

/** Returns why no network namespace can be made here. Undefined if it can. */
function networkNamespacePossible(): string | undefined {
  if (process.platform !== "linux") return "network namespaces need Linux";
  if (process.getuid?.() !== 0) return "network namespaces need root";
  for (const tool of ["ip", "iptables"]) {
    if (spawnSync(tool, ["-V"], { stdio: "ignore" }).status !== 0) return `network namespaces need ${tool}`;
  }
  const name = `legation-probe-${process.pid}`;
  const made = spawnSync("ip", ["netns", "add", name], { encoding: "utf8" });
  if (made.status !== 0) return `the kernel refuses a network namespace here: ${made.stderr.trim()}`;
  const filters = spawnSync("ip", ["netns", "exec", name, "iptables", "-L", "-n"], { encoding: "utf8" });
  spawnSync("ip", ["netns", "delete", name]);
  return filters.status === 0 ? undefined : `packets cannot be dropped here: ${filters.stderr.trim()}`;
}

/** Makes a network namespace. Throws with the reason where that is not possible. */
export function createNetworkNamespace(): NetworkNamespace {
  const obstacle = networkNamespacePossible();
  if (obstacle !== undefined) throw new Error(obstacle);
  const number = process.pid % 250;
  const name = `legation-${process.pid}`;
  const outside = `lg${process.pid}`;
  const inside = "uplink";
  const network = `${PREFIX}.${number}`;
  const addresses = [`${network}.1`, `${network}.2`] as const;
  const within = ["ip", "netns", "exec", name];
  const namespace: NetworkNamespace = {
    name,
    addresses,
    within,
    resolve: (names) => {
      const lines = Object.entries({ localhost: "127.0.0.1", ...names }).map(([host, address]) => `${address} ${host}`);
      // `ip netns exec` mounts this file over /etc/hosts.
      writeFileSync(`${FOLDER}/${name}/hosts`, `${lines.join("\n")}\n`);
    },
    drop: ({ direction, address }) => {
      if (direction !== "out") {
        const from = address === undefined ? [] : ["-s", address];
        run(...within, "iptables", "-w", "-A", "INPUT", "-i", inside, ...from, "-j", "DROP");
      }
      if (direction !== "in") {
        const to = address === undefined ? [] : ["-d", address];
        run(...within, "iptables", "-w", "-A", "OUTPUT", "-o", inside, ...to, "-j", "DROP");
      }
    },
    heal: () => run(...within, "iptables", "-w", "-F"),
    [Symbol.dispose]: () => {
      // Takes the link along.
      spawnSync("ip", ["netns", "delete", name]);
      rmSync(`${FOLDER}/${name}`, { recursive: true, force: true });
    },
  };
  mkdirSync(`${FOLDER}/${name}`, { recursive: true });
  try {
    namespace.resolve({});
    run("ip", "netns", "add", name);
    run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name);
    for (const address of addresses) run("ip", "address", "add", `${address}/24`, "dev", outside);
    run("ip", "link", "set", outside, "up");
    run(...within, "ip", "address", "add", `${network}.3/24`, "dev", inside);
    for (const link of ["lo", inside]) run(...within, "ip", "link", "set", link, "up");
  } catch (error) {
    namespace[Symbol.dispose]();
    throw error;
  }
  return namespace;
}

function run(...[command = "", ...args]: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? stderr.trim()}`);
}
