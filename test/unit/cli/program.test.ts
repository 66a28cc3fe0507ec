import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import type { Command, Option } from "commander";
import { beforeAll, describe, expect, test } from "vitest";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { createProgram, runProgram } from "../../../src/cli/program.ts";
import { type CommandEntry, variableOf } from "../../../src/cli/shared/command.ts";
import { EXIT_CODES, Failure, Interruption } from "../../../src/cli/shared/failure.ts";
import { textWidth } from "../../../src/cli/shared/text-width.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { recordedSession } from "./session.ts";

const program = createProgram(recordedSession(), "1.2.3");
const subcommands = await Promise.all(COMMANDS.map(loaded));

/** Arguments without which commander refuses a command before its flags are read. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  "legation join": ["west"],
  "legation unjoin": ["west"],
  "legation kubeconfig": ["west"],
  "legation describe": ["pods"],
  "legation completion": ["bash"],
};

async function loaded({ name, load }: CommandEntry): Promise<[string, Command]> {
  const command = program.commands.find((each) => each.name() === name);
  if (command === undefined) throw new Error(`legation has no command ${name}`);
  (await load())(command, recordedSession());
  return [`legation ${name}`, command];
}

const readPage = (name: string): Promise<string> => readFile(new URL(`../../../docs/${name}`, import.meta.url), "utf8");

/** Returns the section of a page under the heading of this command. */
function sectionOf(page: string, path: string): string {
  const start = page.search(new RegExp(`^## ${path}$`, "m"));
  expect(start, path).toBeGreaterThan(-1);
  const next = page.indexOf("\n## ", start);
  return next === -1 ? page.slice(start) : page.slice(start, next);
}

describe("the command line", () => {
  test.each(subcommands)("has examples in the help of %s, and they parse", async (path, _command) => {
    const session = recordedSession();
    expect(await runProgram([...path.split(" ").slice(1), "--help"], session, "1.2.3")).toBe(0);
    const help = session.out.join("");
    expect(help).toContain("Examples:");
    expect(help).toContain("--kubeconfig <file>");
    expect(help).toMatch(/^ {2}legation \w+/m);
  });

  test("names an environment variable for every flag but --help and --version", () => {
    const flags: Option[] = [program, ...subcommands.map(([, command]) => command)].flatMap((each) => [
      ...each.options,
    ]);
    for (const option of flags) {
      if (option.long === "--version") continue;
      expect(option.description).toContain(`[${variableOf(option)}]`);
    }
    expect(flags.length).toBeGreaterThan(15);
  });

  test.each(subcommands)("has no line breaks in the descriptions of %s", (_path, command) => {
    const texts = [command.description(), ...command.options.map(({ description }) => description)];
    for (const text of texts) expect(text).not.toContain("\n");
  });

  test.each([
    [["nonsense"], EXIT_CODES.usage, "unknown command 'nonsense'"],
    [["status", "--nonsense"], EXIT_CODES.usage, "unknown option '--nonsense'"],
    [["status", "-o", "xml"], EXIT_CODES.usage, '--output: "xml" is not a format; write wide, json or yaml'],
    [["join"], EXIT_CODES.usage, "missing required argument 'name'"],
    [["join", "West", "--member-kubeconfig", "f"], EXIT_CODES.usage, "<name>: must be small letters"],
    [["join", "west"], EXIT_CODES.usage, "--member-kubeconfig: is missing"],
    [["join", "west", "--member-kubeconfig", "f", "--home-api-through-agent"], EXIT_CODES.usage, "is for --agent"],
    [
      ["join", "west", "--agent", "--home-api-through-agent", "--home-api-server", "https://h"],
      EXIT_CODES.usage,
      "--home-api-through-agent: contradicts --home-api-server: write one of them",
    ],
    [
      ["agent", "--secret", "s", "--home-api-listen", ":6443"],
      EXIT_CODES.usage,
      "is for --home-api-service: write both",
    ],
    [["install", "--webhook-url", "http://h"], EXIT_CODES.usage, "--webhook-url"],
    [["install", "--webhook-url", "https://h/path"], EXIT_CODES.usage, "write e.g. https://127.0.0.1:8443"],
    [["install", "--image", "x y"], EXIT_CODES.usage, '--image: "x y" is not the name of an image'],
    [
      ["install", "--image", "x:1", "--webhook-url", "https://h"],
      EXIT_CODES.usage,
      "contradicts --webhook-url: write one of them",
    ],
    [
      ["status", "DaemonSet"],
      EXIT_CODES.usage,
      '"DaemonSet" is nothing that it shows; write member/NAME, or pod, deployment,',
    ],
    [["status", "deployment.apps"], EXIT_CODES.usage, "e.g. `legation status deployment/web`"],
    [["status", "ns/shop"], EXIT_CODES.usage, "to show a namespace, write `legation status -n shop`"],
    [["status", "West"], EXIT_CODES.usage, '"West" is nothing that it shows'],
    [["status", "deployment/"], EXIT_CODES.usage, '"deployment/" is nothing that it shows'],
    [["status", "pod/a", "pod/b"], EXIT_CODES.usage, '<name>: "pod/b" is a second name'],
    [["status", "pod", "a", "b"], EXIT_CODES.usage, "too many arguments for 'status'"],
    [["status", "sts"], EXIT_CODES.usage, "<name>: is missing; write e.g. `legation status sts web`"],
    [["status", "--kubeconf", "host.yaml"], EXIT_CODES.usage, "(Did you mean --kubeconfig?)"],
    [["staus"], EXIT_CODES.usage, "(Did you mean status?)"],
    [["status", "deploymnt"], EXIT_CODES.usage, "did you mean deployment?"],
    [["status", "-l", "app=web"], EXIT_CODES.usage, "unknown option '-l'"],
    [["status", "--timeout", "5m"], EXIT_CODES.usage, "unknown option '--timeout'"],
    [["-ojson", "status", "--namespace=shop", "West"], EXIT_CODES.usage, '"West" is nothing that it shows'],
    [["--version"], EXIT_CODES.ok, ""],
  ])("exits for %j with %d", async (args, code, message) => {
    const session = recordedSession();
    expect(await runProgram(args, session, "1.2.3")).toBe(code);
    expect(session.err.join("")).toContain(message);
  });
});

describe.each([40, 60, 80, 200])("on a terminal of %d columns", (width) => {
  const terminal = { isTTY: true, env: { COLUMNS: String(width) } };

  test.each([["legation", program] as [string, Command], ...subcommands])(
    "the help of %s has no longer line, and loses no word",
    async (path) => {
      const args = [...path.split(" ").slice(1), "--help"];
      const [narrow, piped] = [recordedSession(terminal), recordedSession()];
      for (const session of [narrow, piped]) expect(await runProgram(args, session, "1.2.3")).toBe(EXIT_CODES.ok);
      const words = (text: string): string => text.replace(/ \\$/gm, "").replaceAll(/\s/g, "");
      const help = narrow.out.join("");
      expect(words(help)).toBe(words(piped.out.join("")));
      // A script in quotes is not broken.
      const tooLong = help.split("\n").filter((line) => textWidth(line) > width && !/^ *'.*'/.test(line));
      expect(tooLong).toEqual([]);
    },
  );
});

test.each(subcommands.filter(([, { options }]) => options.length > 0))(
  "the help of %s has a line for each flag where it is piped, and the formats of -o",
  async (path, { options }) => {
    const session = recordedSession({ env: { COLUMNS: "40" } });
    expect(await runProgram([...path.split(" ").slice(1), "--help"], session, "1.2.3")).toBe(EXIT_CODES.ok);
    const lines = session.out.join("").split("\n");
    for (const { flags, description } of options) {
      expect(lines.filter((line) => line.includes(flags) && line.endsWith(description))).toHaveLength(1);
    }
    expect(session.out.join("")).toMatch(/-o, --output <format> .*: wide \(.*\), json or yaml; with get also name/);
  },
);

test.each(subcommands.filter(([path]) => path !== "legation get"))(
  "%s refuses a wrong -o in the same words",
  async (path) => {
    const session = recordedSession();
    const words = (flag: string): string => `--output: "${flag}" is not a format; write wide, json or yaml`;
    const arguments_ = path.split(" ").slice(1);
    for (const flag of ["xml", "text", "name"]) {
      await runProgram([...arguments_, "-o", flag, ...(REQUIRED[path] ?? [])], session, "1.2.3");
      expect(session.err.join("")).toContain(words(flag));
    }
  },
);

test.each([["status --help west"], ["status west -h"]])("shows the help of status for %s", async (line) => {
  const session = recordedSession();
  expect(await runProgram(line.split(" "), session, "1.2.3")).toBe(EXIT_CODES.ok);
  expect(session.out.join("")).toContain("Usage: legation status");
});

test("names the variables that exclude each other in install", async () => {
  const session = recordedSession({ env: { LEGATION_IMAGE: "x:1", LEGATION_WEBHOOK_URL: "https://h" } });
  expect(await runProgram(["install"], session, "1.2.3")).toBe(EXIT_CODES.usage);
  expect(session.err.join("")).toContain("LEGATION_IMAGE: contradicts --webhook-url: write one of them");
  expect(session.err.join("")).toContain("LEGATION_WEBHOOK_URL: contradicts --image");
  const half = recordedSession({ env: { LEGATION_IMAGE: "x:1" } });
  expect(await runProgram(["install", "--webhook-url", "https://h"], half, "1.2.3")).toBe(EXIT_CODES.usage);
  expect(half.err.join("")).toContain("LEGATION_IMAGE: contradicts");
  expect(half.err.join("")).toContain("--webhook-url: contradicts --image");
});

test.each(["-n x status pod y", "--member-kubeconfig f join west", "--labels join west"])(
  "says of `%s` that the flags of a command stand after it",
  async (line) => {
    const session = recordedSession();
    expect(await runProgram(line.split(" "), session, "1.2.3")).toBe(EXIT_CODES.usage);
    expect(session.err.join("")).toContain("the flags of a command stand after it: `legation COMMAND --help`");
  },
);

test("does not mention the place of a flag that the command does not have", async () => {
  const session = recordedSession();
  expect(await runProgram(["status", "--nonsense"], session, "1.2.3")).toBe(EXIT_CODES.usage);
  expect(session.err.join("")).not.toContain("stand after it");
  expect(session.err.join("")).toContain("(see `legation status --help`)");
});

test("lists each command under the heading of its group", async () => {
  const session = recordedSession();
  await runProgram(["--help"], session, "1.2.3");
  const help = session.out.join("");
  for (const { name, group } of COMMANDS)
    expect(help).toMatch(new RegExp(`^${group}\\n(?: +.*\\n)*? {2}${name} `, "m"));
  expect(help).not.toContain("Commands:");
});

test("lists the commands without loading them", async () => {
  const script = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve: (name, context, next) => {
      if (!/^(node|file):|^[.]/.test(name)) process.stderr.write(name + "\\n");
      return next(name, context);
    } });
    process.argv = ["node", "legation", "--help"];
    await import(${JSON.stringify(new URL("../../../src/cli/main.ts", import.meta.url).href)});`;
  const child = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(child.stdout).toContain("status");
  expect(new Set(child.stderr.trim().split("\n"))).toEqual(new Set(["commander"]));
});

describe("errors", () => {
  const run = async (error: unknown, env: Record<string, string> = {}): Promise<{ code: number; err: string }> => {
    const session = recordedSession({ env, connect: () => Promise.reject(error) });
    return { code: await runProgram(["status"], session, "1.2.3"), err: session.err.join("") };
  };
  const refused = new Failure("refused", {
    object: "Cluster west",
    field: "name",
    problem: "is taken",
    remedy: "choose",
  });

  test("print one message with the remedy, and no stack", async () => {
    expect(await run(refused)).toEqual({ code: 3, err: "error: Cluster west: name: is taken\n       choose\n" });
  });

  test("have the stack with --verbose or its variable", async () => {
    const { err } = await run(refused, { LEGATION_VERBOSE: "1" });
    expect(err).toMatch(/\n {4}at /);
  });

  test("refuse an invalid LEGATION_VERBOSE before anything is done", async () => {
    const { code, err } = await run(refused, { LEGATION_VERBOSE: "on" });
    expect(code).toBe(EXIT_CODES.usage);
    expect(err).toContain("LEGATION_VERBOSE: ");
  });

  test.each([
    ["connect ECONNREFUSED 10.0.0.1:6443", "nothing listens at 10.0.0.1:6443"],
    ["getaddrinfo ENOTFOUND api.example.com", "the name api.example.com is not known here"],
    ["HTTP 404", "there is no such path, so it may be the address of something else than an API server"],
    ["HTTP 503: no backend", "HTTP 503: no backend"],
  ])("are told as a sentence, and say what to check: %s", async (detail, words) => {
    const error = kubeError("NotSent", detail, { cluster: "host", verb: "list", resource: "clusters" });
    const { code, err } = await run(error);
    expect(code).toBe(1);
    expect(err).toContain(`host: cannot list clusters: ${words}\n`);
    expect(err).toContain("check that the API server runs");
  });

  test("name the path of a request for what is no resource", async () => {
    const error = kubeError("NotFound", "HTTP 404", {
      cluster: "host",
      verb: "get",
      resource: "raw",
      objectName: "/readyz",
    });
    expect((await run(error)).err).toContain("host: cannot read /readyz: there is no such path");
  });

  test.each([
    "self-signed certificate in certificate chain",
    "Hostname/IP does not match certificate's altnames: IP: 10.0.0.1 is not in the cert's list: ",
  ])("do not blame the address for a certificate that cannot be verified (%s)", async (detail) => {
    const error = kubeError("NotSent", detail, { verb: "get", resource: "namespaces" });
    const { err } = await run(error);
    expect(err).toContain("check `certificate-authority` and `tls-server-name` of the kubeconfig, and HTTPS_PROXY");
  });

  test.each(["certificate has expired", "certificate is not yet valid"])(
    "what is wrong with the time of a certificate (%s) is not looked for in who signed it",
    async (detail) => {
      const error = kubeError("NotSent", detail, { verb: "get", resource: "namespaces" });
      const { err } = await run(error);
      expect(err).toContain("renew the API server's certificate, or set this machine's clock");
      expect(err).not.toContain("certificate-authority");
    },
  );

  test.each([
    ["SIGINT", 130, "interrupted\n"],
    ["SIGTERM", 143, "error: interrupted\n"],
  ] as const)("after %s the exit code is %d, whatever the interrupted step threw", async (signal, code, words) => {
    const interruption = new AbortController();
    const session = recordedSession({
      signal: interruption.signal,
      connect: () => {
        interruption.abort(new Interruption(signal));
        return Promise.reject(new Error("aborted"));
      },
    });
    expect(await runProgram(["status"], session, "1.2.3")).toBe(code);
    expect(session.err.join("")).toBe(words);
  });
});

describe("docs/reference/commands.md", () => {
  let text: string;
  beforeAll(async () => {
    text = await readPage("reference/commands.md");
  });

  test.each(subcommands)("describes %s with all its flags", (path, command) => {
    const section = sectionOf(text, path);
    for (const option of command.options) expect(section).toContain(`\`${option.flags}\``);
    expect(section.match(/`-[^`]*--[a-z][^`]*`|`--[a-z][^`]*`/g)?.length ?? 0).toBeGreaterThanOrEqual(
      command.options.length,
    );
    expect(section).toContain(`(../cli.md#${path.replace(" ", "-")})`);
  });
});

describe("docs/cli.md", () => {
  let text: string;
  beforeAll(async () => {
    text = await readPage("cli.md");
  });

  test.each(subcommands)("describes %s, and leaves its flags to the reference", (path, command) => {
    const section = sectionOf(text, path);
    expect(section).not.toContain("| flag | meaning |");
    if (command.options.length > 0) {
      expect(section).toContain(`(reference/commands.md#${path.replace(" ", "-")})`);
    }
  });

  test.each(Object.entries(EXIT_CODES))("lists the exit code %s", (_name, code) => {
    expect(text).toMatch(new RegExp(`^\\| ${code} +\\|`, "m"));
  });
});
