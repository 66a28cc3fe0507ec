import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { configMaps, pods, services } from "../../../../../src/kube/resources.ts";
import { IMAGE, onEngineClusters, useEngine } from "../../../../support/engines/clusters.ts";
import { giveFiles } from "../../../../support/engines/given-files.ts";
import { resolvConf, startNameServer } from "../../../../support/engines/name-server.ts";
import { sparkHome } from "../../../../support/engines/python.ts";
import { startProgram } from "../../../../support/engines/run.ts";
import { findJava, JAVA_OPTIONS, sparkFiles } from "../../../../support/engines/spark.ts";
import { kubectl } from "../../../../support/harness/kubectl.ts";
import { evict, podsOf } from "../../../../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../../../../support/harness/wait.ts";
import { ROOT } from "../../../../support/legation/cli.ts";

// Spark itself: spark-submit has the host's kubeconfig, and the driver in the member creates its executors on the host.

const EXAMPLE = join(ROOT, "examples", "engines", "spark");
const patient = { timeoutMs: 240_000, intervalMs: 1_000 };

onEngineClusters((clusters) => {
  const spark = useEngine("spark");

  /** Creates the service account of a driver with rights on its executors. */
  async function allowDriver(namespace: string): Promise<void> {
    const { host } = clusters();
    const resources = "--resource=pods,services,configmaps,persistentvolumeclaims";
    await kubectl(host, ["create", "serviceaccount", "spark", "-n", namespace]);
    await kubectl(host, ["create", "role", "spark", "-n", namespace, "--verb=*", resources]);
    const binding = ["create", "rolebinding", "spark", "-n", namespace, "--role=spark"];
    await kubectl(host, [...binding, `--serviceaccount=${namespace}:spark`]);
  }

  function settings(namespace: string): string[] {
    return Object.entries({
      "spark.kubernetes.namespace": namespace,
      "spark.kubernetes.container.image": IMAGE,
      "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
      "spark.kubernetes.driver.pod.name": "driver",
      "spark.kubernetes.executor.podNamePrefix": "sums",
      "spark.kubernetes.driver.request.cores": "0.3",
      "spark.kubernetes.executor.request.cores": "0.3",
      "spark.executor.instances": "2",
      "spark.driver.memory": "512m",
      "spark.executor.memory": "512m",
      "spark.driver.extraJavaOptions": JAVA_OPTIONS,
      "spark.executor.extraJavaOptions": JAVA_OPTIONS,
      "spark.ui.enabled": "false",
    }).flatMap(([key, value]) => ["--conf", `${key}=${value}`]);
  }

  test("runs a Spark driver and its executors in the member, and replaces an executor that is evicted there", async ({
    onTestFinished,
  }) => {
    const { host, west, client, member, address, directory } = clusters();
    const namespace = await clusters().namespace(onTestFinished);
    await allowDriver(namespace);
    const [java, names] = [findJava(), join(directory, "resolv.conf")];
    writeFileSync(names, resolvConf(namespace, address));
    await giveFiles(west, namespace, [
      ...sparkFiles(spark(), java, directory),
      { from: EXAMPLE, to: EXAMPLE },
      { from: names, to: "/etc/resolv.conf" },
    ]);
    onTestFinished(await startNameServer(member, address));

    const home = sparkHome(spark());
    const cluster = ["--master", `k8s://${host.server}`, "--deploy-mode", "cluster", "--name", "sums"];
    const submit = startProgram(
      join(home, "bin", "spark-submit"),
      [...cluster, ...settings(namespace), `local://${join(EXAMPLE, "rounds.py")}`, "3"],
      {
        env: {
          ...process.env,
          JAVA_HOME: java,
          SPARK_HOME: home,
          KUBECONFIG: host.kubeconfig,
          SPARK_SUBMIT_OPTS: JAVA_OPTIONS,
        },
        cwd: directory,
        logFile: join(directory, "spark-submit.log"),
      },
    );
    onTestFinished(() => submit.kill("SIGKILL"));
    const logOf = (pod: string): Promise<string> => kubectl(host, ["logs", "-n", namespace, pod]);
    const rounds = async (): Promise<string[]> =>
      (await logOf("driver")).split("\n").filter((line) => line.startsWith("sum "));
    onTestFinished(async ({ task }) => {
      if (task.result?.state !== "fail") return;
      process.stderr.write(submit.output().slice(-5_000));
      for (const { metadata } of await podsOf(client, namespace)) {
        process.stderr.write(`${metadata.name}: ${await logOf(metadata.name).catch(String)}\n`);
      }
    });

    await eventually(async () => (await rounds()).includes("sum 4950 on sums-exec-1 sums-exec-2"), patient);
    const running = await podsOf(client, namespace);
    expect(running.map(({ metadata, spec }) => `${metadata.name} ${spec?.nodeName}`)).toEqual([
      "driver legation-west",
      "sums-exec-1 legation-west",
      "sums-exec-2 legation-west",
    ]);
    await evict(member, namespace, "sums-exec-1");

    const { code, output } = await submit.ended;
    expect(code).toBe(0);
    expect(output).toMatch(/exit code: 0\n\s+termination reason: Completed/);
    expect((await rounds()).at(-1)).toBe("sum 4950 on sums-exec-2 sums-exec-3");
    await eventuallyPasses(async () => {
      for (const side of [client, member]) {
        const left = await podsOf(side, namespace);
        expect(left.map(({ metadata, status }) => `${metadata.name} ${status?.phase}`)).toEqual(["driver Succeeded"]);
        expect((await side.list(services, { namespace })).items).toEqual([]);
      }
    }, patient);
    await client.delete(pods, { namespace, name: "driver" });
    await eventuallyPasses(async () => {
      for (const side of [client, member]) {
        expect(await podsOf(side, namespace)).toEqual([]);
        const { items } = await side.list(configMaps, { namespace });
        expect(items.filter(({ metadata }) => metadata.name.startsWith("spark-"))).toEqual([]);
      }
    }, patient);
  });
});
