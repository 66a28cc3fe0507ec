import { join } from "node:path";
import { expect, test } from "vitest";
import { IMAGE, onEngineClusters, useEngine } from "../../../../support/engines/clusters.ts";
import { givePython } from "../../../../support/engines/python-in-pods.ts";
import { startProgram } from "../../../../support/engines/run.ts";
import { podsOf } from "../../../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../../../support/harness/wait.ts";
import { ROOT } from "../../../../support/legation/cli.ts";

// Parsl creates bare pods, which connect back to it, and reads only their phase.

const SQUARES = join(ROOT, "examples", "engines", "parsl", "squares.py");

onEngineClusters((clusters) => {
  const parsl = useEngine("parsl");

  test("runs Parsl's functions in two pods of the member, and deletes both when all is done", async ({
    onTestFinished,
  }) => {
    const { host, west, client, member, address, directory, namespace } = clusters();
    const name = await namespace(onTestFinished);
    await givePython(west, name, parsl());
    const program = startProgram(parsl().python, [SQUARES, name, IMAGE, address], {
      env: { ...process.env, KUBECONFIG: host.kubeconfig, PATH: `${join(parsl().folder, "bin")}:${process.env.PATH}` },
      cwd: directory,
      logFile: join(directory, "squares.log"),
    });
    onTestFinished(() => program.kill("SIGKILL"));
    await eventually(async () => (await podsOf(client, name)).length === 2, { timeoutMs: 180_000 });
    const blocks = (await podsOf(client, name)).map(({ metadata }) => metadata.name);
    const { code, output } = await program.ended;
    const squares = [...output.matchAll(/^square (\d+) (\S+)$/gm)];
    expect({ code, output, squares: squares.map(([, square]) => Number(square)) }).toEqual({
      code: 0,
      output,
      squares: [0, 1, 4, 9, 16, 25, 36, 49],
    });
    expect([...new Set(squares.map(([, , pod]) => pod))].sort()).toEqual(blocks);
    expect(output).toContain("refused not with me");
    // Workers use up their whole grace period.
    await eventuallyPasses(async () => {
      const all = [...(await podsOf(client, name)), ...(await podsOf(member, name))];
      expect(all.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toEqual([]);
    });
  });
});
