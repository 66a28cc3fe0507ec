import { globSync } from "node:fs";
import { dirname, relative } from "node:path/posix";
import { allowedImports, RESERVED_PACKAGES, type Room } from "./room.ts";

/** An entry of `overrides` in biome.json. */
type Override = Readonly<Record<string, unknown>>;

const TABLE = "scripts/rooms";
/** Globals that read the machine, and what pure code does instead. */
const DENIED_GLOBALS: Readonly<Record<string, string>> = {
  globalThis: "Pure code: what is global is the machine's; take what you need as an argument.",
  process: "Pure code: no environment; take what you need as an argument.",
  performance: "Pure code: no clock; take the moment as an argument.",
  setTimeout: "Pure code: no clock; say in the result when to look again.",
  setInterval: "Pure code: no clock; say in the result when to look again.",
  setImmediate: "Pure code: no clock; say in the result when to look again.",
  queueMicrotask: "Pure code: no clock; return a value.",
  crypto: "Pure code: no randomness; take the value as an argument.",
  fetch: "Pure code: no I/O; take what it would answer as an argument.",
};

/** Holds for all rooms that are not pure, but for commands, the readers of metrics, and the timer itself. */
const TIMERS: Override = {
  includes: ["src/**", "webhook/**", "!src/{cli,telemetry}/**", "!src/kube/timer.ts"],
  linter: {
    rules: {
      style: {
        noRestrictedGlobals: {
          level: "error",
          options: {
            deniedGlobals: {
              setTimeout:
                "Take a Clock, or startTimer of src/kube/timer.ts: Node.js warns of delays that have passed or are too long.",
            },
          },
        },
      },
    },
  },
};

/** Returns the configuration that biome.json extends. */
export function linterConfiguration(rooms: readonly Room[], root: string): string {
  const overrides = roomOverrides(rooms, root).map((override) => JSON.stringify(override));
  return `{\n  "root": false,\n  "overrides": [\n    ${overrides.join(",\n    ")}\n  ]\n}\n`;
}

/** Returns the entries of `overrides` that hold the table: later entries win, so files come after folders. */
function roomOverrides(rooms: readonly Room[], root: string): Override[] {
  const foldersFirst = [...rooms].sort((a, b) => Number(isFile(a.room)) - Number(isFile(b.room)));
  return [
    TIMERS,
    forbidden({
      includes: ["src/**", "webhook/**"],
      message: `This folder has no row in ${TABLE}, so it may import nothing.`,
    }),
    ...foldersFirst.flatMap((room) => overridesOf(room, rooms, root)),
  ];
}

/** Returns one entry for each depth of folders in the room, since imports are relative paths. */
function overridesOf(room: Room, rooms: readonly Room[], root: string): Override[] {
  const path = pathOf(room.room);
  const allowed = [...allowedImports(room), ...(room.exceptions ?? [])];
  const message = `${room.room} may import ${allowed.length === 0 ? "no other room" : allowed.join(", ")} (${TABLE}).`;
  const pure = room.pure === true ? ["node:*"] : [];
  if (isFile(room.room)) {
    const folder = dirname(path);
    const group = [...allRelative(), "!./**", ...allowed.map((target) => `!${specifier(folder, target, rooms)}`)];
    return [forbidden({ includes: [path], group, message, room, pure })];
  }
  const depth = depthOf(room.room, rooms, root);
  return Array.from({ length: depth + 1 }, (_, level) => {
    const folder = path + "/*".repeat(level);
    const up = "../".repeat(level);
    const own = hasNested(room.room, rooms) ? ["!./*"] : ["!./**", ...(level === 0 ? [] : [`!${up}**`, `${up}../**`])];
    const group = [...allRelative(), ...own, ...allowed.map((target) => `!${specifier(folder, target, rooms)}`)];
    return forbidden({ includes: [`${folder}/*.ts`, `${folder}/*.tsx`], group, message, room, pure });
  });
}

function forbidden({
  includes,
  group = allRelative(),
  message,
  room,
  pure = [],
}: {
  readonly includes: readonly string[];
  readonly group?: readonly string[];
  readonly message: string;
  readonly room?: Room;
  readonly pure?: readonly string[];
}): Override {
  const paths = Object.fromEntries(
    Object.entries(RESERVED_PACKAGES).filter(([name]) => room?.packages?.includes(name) !== true),
  );
  const patterns = [{ group, message }, ...(pure.length === 0 ? [] : [{ group: pure, message: PURE_MESSAGE }])];
  const style = { noRestrictedImports: { level: "error", options: { paths, patterns } } };
  if (pure.length === 0) return { includes, linter: { rules: { style } } };
  const noRestrictedGlobals = { level: "error", options: { deniedGlobals: DENIED_GLOBALS } };
  return {
    includes,
    plugins: ["./scripts/lint/pure-code.grit"],
    linter: { rules: { style: { ...style, noRestrictedGlobals } } },
  };
}

const PURE_MESSAGE = "Pure code: no I/O, no clock, no randomness.";

function allRelative(): string[] {
  return ["./**", "../**"];
}

/** Returns the glob of import specifiers that lead from a folder to a room or file. */
function specifier(folder: string, target: string, rooms: readonly Room[]): string {
  const path = relative(folder, pathOf(target));
  const from = path.startsWith(".") ? path : `./${path}`;
  if (isFile(target)) return from;
  return hasNested(target, rooms) ? `${from}/*` : `${from}/**`;
}

function depthOf(room: string, rooms: readonly Room[], root: string): number {
  if (hasNested(room, rooms)) return 0;
  const base = pathOf(room).split("/").length;
  const files = globSync(`${pathOf(room)}/**/*.{ts,tsx}`, { cwd: root });
  return Math.max(0, ...files.map((file) => file.split("/").length - base - 1));
}

/** Reports whether rows for subfolders exist, so that the room holds its own files only. */
function hasNested(room: string, rooms: readonly Room[]): boolean {
  return rooms.some((other) => other.room.startsWith(`${room}/`) && !isFile(other.room));
}

function pathOf(room: string): string {
  return room === "webhook" || room.startsWith("webhook/") ? room : `src/${room}`;
}

function isFile(room: string): boolean {
  return room.endsWith(".ts");
}
