import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { flag, readInput } from "../../../../src/cli/shared/command.ts";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { duration, toggle } from "../../../../src/cli/shared/input.ts";
import type { Environment } from "../../../../src/kube/environment-proxy.ts";

const schema = z.object({
  name: z.string().optional(),
  force: toggle,
  timeout: duration.optional(),
  webhookUrl: z.string().optional(),
});

async function read(args: string[], env: Environment = {}): Promise<z.output<typeof schema>> {
  const read = Promise.withResolvers<z.output<typeof schema>>();
  const program = new Command("legation").exitOverride().addOption(flag("--webhook-url <url>", "address"));
  program
    .command("act")
    .argument("[name]")
    .addOption(flag("--force", "anyway"))
    .addOption(flag("--timeout <duration>", "how long"))
    .action((name, _options, command: Command) => read.resolve(readInput(command, { name }, env, schema)));
  await program.parseAsync(["act", ...args], { from: "user" });
  return read.promise;
}

describe("flags and environment variables", () => {
  test("take the variable where the flag is not given", async () => {
    const input = await read(["x"], { LEGATION_TIMEOUT: "2m", LEGATION_WEBHOOK_URL: "https://h" });
    expect(input).toEqual({ name: "x", force: false, timeout: 120_000, webhookUrl: "https://h" });
  });

  test("prefer the flag to its variable, also a flag of the parent command", async () => {
    const env = { LEGATION_TIMEOUT: "2m", LEGATION_WEBHOOK_URL: "https://h" };
    const input = await read(["--timeout", "1s", "--webhook-url", "https://i"], env);
    expect(input).toMatchObject({ timeout: 1000, webhookUrl: "https://i" });
  });

  test.each([
    ["true", true],
    ["1", true],
    ["YES", true],
    ["false", false],
    ["0", false],
    ["no", false],
    ["", false],
  ])("take LEGATION_FORCE=%s as %s", async (value, expected) => {
    expect((await read([], { LEGATION_FORCE: value })).force).toBe(expected);
  });

  test("name each problem with its flag or variable", async () => {
    const failed = read(["--timeout", "soon"], { LEGATION_FORCE: "perhaps" });
    await expect(failed).rejects.toThrow(Failure);
    await expect(failed).rejects.toThrow(/--timeout: "soon" is not a duration/);
    await expect(failed).rejects.toThrow(/LEGATION_FORCE: "perhaps" is neither true nor false/);
  });

  test("name the variable in the help of a flag", () => {
    expect(flag("-o, --member-kubeconfig <file>", "kubeconfig").description).toBe(
      "kubeconfig [LEGATION_MEMBER_KUBECONFIG]",
    );
  });
});
