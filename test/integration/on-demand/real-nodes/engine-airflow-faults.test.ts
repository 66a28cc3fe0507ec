import { expect, test } from "vitest";
import { pods } from "../../../../src/kube/resources.ts";
import { startDags } from "../../../support/engines/airflow/dags.ts";
import { noPodIsLeft, onEngineClusters, useEngine } from "../../../support/engines/clusters.ts";
import { inPhase, podsOf } from "../../../support/harness/pods-of.ts";
import { eventually } from "../../../support/harness/wait.ts";

// Tasks of Airflow that time out, whose pods are lost, and whose logs are followed while the controller restarts.

const patient = { timeoutMs: 400_000 };

onEngineClusters((clusters) => {
  const airflow = useEngine("airflow");

  test("ends a KubernetesPodOperator that times out, and retries one whose pod is lost", async ({
    expect,
    onTestFinished,
  }) => {
    const namespace = await clusters().namespace(onTestFinished);
    const running = startDags(clusters(), airflow(), namespace, "killed", "lost");
    const { member } = clusters();
    const lose = async (): Promise<void> => {
      const first = await eventually(
        async () =>
          (await podsOf(member, namespace)).find(
            (pod) => pod.metadata.name.startsWith("lost-") && inPhase("Running")(pod),
          ),
        { ...patient, what: "the first pod of the task" },
      );
      await member.delete(pods, { namespace, name: first.metadata.name });
    };
    const [ended] = await Promise.all([running.ended, lose()]);

    const killed = ended.get("killed");
    expect(killed?.tasks).toEqual({ killed: ["failed", 1] });
    expect(killed?.log).toContain("AirflowTaskTimeout");

    const lost = ended.get("lost");
    expect(lost?.tasks).toEqual({ lost: ["success", 2] });
    expect(lost?.log).toMatch(/Pod lost-\w+ returned a failure[\s\S]*\[base\] this is try 2/);

    await noPodIsLeft(clusters(), namespace);
  });

  test("goes on following the log of a KubernetesPodOperator while the controller is killed and restarted", async ({
    onTestFinished,
  }) => {
    const { legation } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    const { said, ended } = startDags(clusters(), airflow(), namespace, "long");
    const follows = eventually(() => /\[base\] step 2\s/.test(said()), { ...patient, what: "a log that is followed" });
    await Promise.race([follows, ended]);
    await legation.controller.stop("SIGKILL");
    await legation.controller.start();
    const long = (await ended).get("long");
    expect(long?.tasks).toEqual({ long: ["success", 1] });
    expect(long?.log).toMatch(/\[base\] step 1\s[\s\S]*log read interrupted[\s\S]*\[base\] step 12\s/);
    await noPodIsLeft(clusters(), namespace);
  });
});
