import { expect, test } from "vitest";
import { startDags } from "../../../../support/engines/airflow/dags.ts";
import { noPodIsLeft, onEngineClusters, useEngine } from "../../../../support/engines/clusters.ts";

// Airflow itself, with the DAGs of examples/: it has the host's kubeconfig, and the namespace has one label.

onEngineClusters((clusters) => {
  const airflow = useEngine("airflow");

  test("returns results, logs, failures and retries of a KubernetesPodOperator, and resumes a deferred one", async ({
    onTestFinished,
  }) => {
    const namespace = await clusters().namespace(onTestFinished);
    const ended = await startDags(clusters(), airflow(), namespace, "results", "failing", "retried", "deferred").ended;

    const results = ended.get("results");
    expect(results?.tasks).toEqual({ measured: ["success", 1], told: ["success", 1] });
    expect(results?.log).toMatch(/\[base\] measuring in measured-/);
    expect(results?.log).toContain('the pod has answered {"answer": 42}');

    const failing = ended.get("failing");
    expect(failing?.tasks).toEqual({ failing: ["failed", 1] });
    expect(failing?.log).toContain("[base] about to fail");
    expect(failing?.log).toMatch(/Pod failing-\w+ returned a failure/);
    expect(failing?.log).toMatch(/'exit_code': 3/);

    const retried = ended.get("retried");
    expect(retried?.tasks).toEqual({ retried: ["success", 2] });
    expect(retried?.log).toMatch(/\[base\] this is try 1[\s\S]*\[base\] this is try 2/);

    const deferred = ended.get("deferred");
    expect(deferred?.tasks).toEqual({ deferred: ["success", 1] });
    expect(deferred?.log).toContain("Pausing task as DEFERRED");
    // The trigger itself lists events, by the name of the pod.
    expect(deferred?.log).toMatch(/The Pod has an Event: Successfully assigned \S+ to \S+/);
    expect(deferred?.log).toMatch(/step 1[\s\S]*step 6/);
    await noPodIsLeft(clusters(), namespace);
  });
});
