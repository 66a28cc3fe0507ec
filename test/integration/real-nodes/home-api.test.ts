import { afterAll, beforeAll, expect, test } from "vitest";
import type { Container, Pod, PodSpec, Stored, Volume } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { events, pods, secrets } from "../../../src/kube/resources.ts";
import { apiSecretName } from "../../../src/pods/home-api.ts";
import type { Cluster } from "../../support/clusters/types.ts";
import { delegatedPod } from "../../support/delegated/pods.ts";
import { uniqueName } from "../../support/delegated/unique-name.ts";
import { kubectlIn } from "../../support/engines/kubectl-in-pod.ts";
import { afterFile, cleanUpFile } from "../../support/harness/after-file.ts";
import { clientOf } from "../../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../../support/harness/clusters.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { freshNamespace } from "../../support/harness/namespace.ts";
import { inPhase, podGone, podThat } from "../../support/harness/pods-of.ts";
import { whereRealNodesRun } from "../../support/harness/real-nodes.ts";
import { eventually } from "../../support/harness/wait.ts";
import { type Legation, startLegation } from "../../support/legation/start.ts";

const FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";
const patient = { timeoutMs: 120_000 };
const labels = { "legation.dev/delegation": "annotated" };

function script(text: string): Container {
  return { name: "main", image: "localhost/busybox:1", command: ["sh", "-c", `trap 'exit 0' TERM\n${text}`] };
}

function pod(namespace: string, name: string, spec: Partial<PodSpec>, annotations: Record<string, string> = {}): Pod {
  return delegatedPod(namespace, name, {
    annotations,
    spec: { terminationGracePeriodSeconds: 1, restartPolicy: "Never", ...spec },
  });
}

function inPods(): void {
  let legation: Legation;
  let host: Cluster;
  let west: Cluster;
  let client: ClusterClient;
  let member: ClusterClient;
  let namespace: string;

  beforeAll(async () => {
    host = hostCluster();
    west = memberCluster("west");
    client = clientOf(host);
    member = clientOf(west);
    // Pods of the member reach the host at its service address.
    const service = await kubectl(host, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
    const controllerFlags = [`--home-api-server=https://${service.trim()}`];
    legation = await startLegation({ host, members: { west }, controllerFlags, restart: true });
    namespace = await freshNamespace([host, west], { prefix: "home", labels, onFinished: afterFile });
    const rule = ["--verb=get,list,watch,create,delete", "--resource=pods,pods/log"];
    await kubectl(host, ["create", "role", "reader", "-n", namespace, ...rule]);
    const reader = ["create", "rolebinding", "reader", "-n", namespace, "--role=reader"];
    await kubectl(host, [...reader, `--serviceaccount=${namespace}:default`]);
  });
  afterAll(async () => {
    await cleanUpFile();
    await legation?.stop();
    await Promise.all([client?.close(), member?.close()]);
  });

  /** Waits for the end of the pod and returns its log, from the member. */
  async function said(name: string): Promise<string> {
    const ended = (found: Pod): boolean => inPhase("Succeeded")(found) || inPhase("Failed")(found);
    await podThat(client, namespace, name, ended, patient);
    return kubectl(west, ["logs", "-n", namespace, name]);
  }

  async function run(name: string, spec: Partial<PodSpec>, annotations?: Record<string, string>): Promise<Stored<Pod>> {
    await client.create(pods, pod(namespace, name, spec, annotations));
    return podThat(client, namespace, name, inPhase("Running"), patient);
  }

  test.concurrent("lets an in-cluster client find its own proxy on the host, as the proxy's service account", async () => {
    const asks = `kubectl get pod $HOSTNAME -o jsonpath='{.metadata.uid} {.spec.nodeName}' && echo &&
KUBERNETES_SERVICE_HOST=kubernetes.default.svc kubectl get pod $HOSTNAME -o jsonpath='{.metadata.uid}' && echo &&
kubectl auth whoami -o json`;
    const name = uniqueName("self");
    const { metadata } = await client.create(pods, pod(namespace, name, kubectlIn(script(asks))));
    const [found = "", byName, ...rest] = (await said(name)).split("\n");
    expect(found).toBe(`${metadata.uid} legation-west`);
    expect(byName).toBe(metadata.uid);
    expect(JSON.parse(rest.join("\n")).status.userInfo).toMatchObject({
      username: `system:serviceaccount:${namespace}:default`,
      extra: { "authentication.kubernetes.io/pod-uid": [metadata.uid] },
    });
  });

  test.concurrent("accepts the author's own token Secret at the standard path as on a node", async () => {
    const [secretName, name] = [uniqueName("executor"), uniqueName("agent")];
    await client.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/service-account-token",
      metadata: { namespace, name: secretName, annotations: { "kubernetes.io/service-account.name": "default" } },
    });
    await eventually(async () => (await client.get(secrets, { namespace, name: secretName })).data?.token, patient);
    const asks = script("kubectl get pod $HOSTNAME -o jsonpath='{.metadata.uid}' && kubectl auth whoami -o json");
    const { containers, volumes = [] } = kubectlIn({
      ...asks,
      volumeMounts: [{ name: "exec-sa-token", mountPath: FOLDER, readOnly: true }],
    });
    const volume: Volume = { name: "exec-sa-token", secret: { secretName } };
    const spec = { containers, volumes: [...volumes, volume], automountServiceAccountToken: false };
    const { metadata } = await client.create(pods, pod(namespace, name, spec));
    const text = await said(name);
    expect(text.slice(0, metadata.uid.length)).toBe(metadata.uid);
    expect(JSON.parse(text.slice(metadata.uid.length)).status.userInfo.username).toBe(
      `system:serviceaccount:${namespace}:default`,
    );
  });

  test.concurrent("delegates a pod that a driver creates by the home API, and deletes it with the driver's call", async () => {
    const [driver, worker] = [uniqueName("driver"), uniqueName("worker")];
    const manifest = JSON.stringify(pod(namespace, worker, { containers: [script("sleep 600 & wait")] }));
    const drives = `cat >/tmp/worker <<'END'
${manifest}
END
kubectl create -f /tmp/worker && kubectl wait pod/${worker} --for=condition=Ready --timeout=60s && kubectl delete pod/${worker}`;
    await client.create(pods, pod(namespace, driver, kubectlIn(script(drives))));
    expect(await said(driver)).toContain(`pod/${worker} created\npod/${worker} condition met\npod "${worker}" deleted`);
    await podGone(member, namespace, worker);
  });

  test.concurrent("mounts token, authority and namespace as on a node, with variables that lead to the host", async () => {
    const shows = `cd ${FOLDER}; stat -Lc '%a %n' token ca.crt namespace; cat namespace; echo; cat ca.crt; echo $KUBERNETES_SERVICE_HOST`;
    const name = uniqueName("files");
    await client.create(pods, pod(namespace, name, { containers: [script(shows)] }));
    const lines = (await said(name)).trim().split("\n");
    expect(lines.slice(0, 4)).toEqual(["644 token", "644 ca.crt", "644 namespace", namespace]);
    expect(lines.slice(4, -1).join("\n").trim()).toBe(host.caData.trim());
    expect(lines.at(-1)).toBe(
      (await kubectl(host, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"])).trim(),
    );
  });

  // The kubelet's own modes: 600 for the user, and 640 with a group.
  test.concurrent.each<[string, Partial<PodSpec>, string]>([
    ["root alone", { securityContext: { runAsUser: 0 } }, "600 0 0"],
    ["its group alone", { securityContext: { runAsUser: 7, fsGroup: 8 } }, "640 0 8"],
    ["all, since a Secret's file is root's", { securityContext: { runAsUser: 7 } }, "644 0 0"],
  ])("mounts a token's file for %s", async (_case, spec, expected) => {
    const name = uniqueName("mode");
    const shows = script(
      `stat -Lc '%a %u %g' ${FOLDER}/token && test -s ${FOLDER}/token && cat ${FOLDER}/token >/dev/null`,
    );
    await client.create(pods, pod(namespace, name, { ...spec, containers: [shows] }));
    expect((await said(name)).trim()).toBe(expected);
    await podThat(client, namespace, name, inPhase("Succeeded"), patient);
  });

  test.concurrent("leads the pod to its member with legation.dev/api: member, and mounts no token with none", async () => {
    const asks =
      "kubectl auth whoami -o jsonpath='{.status.userInfo.username}'; kubectl version -o json >/dev/null; echo; echo $KUBERNETES_SERVICE_HOST";
    const [theirs, nobody] = [uniqueName("theirs"), uniqueName("nobody")];
    await client.create(pods, pod(namespace, theirs, kubectlIn(script(asks)), { "legation.dev/api": "member" }));
    const none = script(`ls ${FOLDER} 2>&1; true`);
    await client.create(pods, pod(namespace, nobody, { containers: [none] }, { "legation.dev/api": "none" }));
    const service = await kubectl(west, ["get", "service/kubernetes", "-o", "jsonpath={.spec.clusterIP}"]);
    expect(await said(theirs)).toBe(`system:serviceaccount:${namespace}:default\n${service.trim()}\n`);
    expect(await said(nobody)).toContain("No such file or directory");
  });

  test.concurrent("keeps the author's own audience and paths", async () => {
    const volume: Volume = {
      name: "vault",
      projected: { defaultMode: 256, sources: [{ serviceAccountToken: { audience: "vault", path: "here/token" } }] },
    };
    const container = {
      ...script("stat -Lc %a /vault/here/token; cut -d. -f2 /vault/here/token"),
      volumeMounts: [{ name: "vault", mountPath: "/vault" }],
    };
    const name = uniqueName("vault");
    await client.create(pods, pod(namespace, name, { volumes: [volume], containers: [container] }));
    const [mode, claims = ""] = (await said(name)).trim().split("\n");
    expect(mode).toBe("400");
    expect(JSON.parse(Buffer.from(claims, "base64url").toString("utf8")).aud).toEqual(["vault"]);
  });

  test.concurrent("runs a pod whose Secret comes late", async () => {
    const crowded = await freshNamespace([host, west], { prefix: "late", labels, onFinished: afterFile });
    const quota = ["quota", "none", "-n", crowded];
    await kubectl(west, ["create", ...quota, "--hard=count/secrets=0"]);
    await eventually(async () => (await kubectl(west, ["get", ...quota, "-o", "jsonpath={.status.hard}"])) !== "");
    await client.create(pods, pod(crowded, "late", { containers: [script("sleep 600 & wait")] }));
    await eventually(async () => {
      const { items } = await member.list(events, { namespace: crowded });
      return items.some(({ involvedObject, reason }) => involvedObject.name === "late" && reason === "FailedMount");
    }, patient);
    await kubectl(west, ["delete", ...quota]);
    await podThat(client, crowded, "late", inPhase("Running"), patient);
  });

  /** Returns the user that the host sees in a token. */
  function bearer(token: string): Promise<string> {
    const trust = [`--server=${host.server}`, `--certificate-authority=${host.caFile}`];
    return kubectl(host, ["auth", "whoami", "-o", "json", `--token=${token}`, ...trust], { kubeconfig: "/dev/null" });
  }

  /** Waits until the host accepts none of the tokens. */
  async function expectVoid(...tokens: readonly string[]): Promise<void> {
    for (const token of tokens) {
      const refused = (): Promise<boolean> =>
        bearer(token).then(
          () => false,
          (error: Error) => error.message.includes("Unauthorized"),
        );
      // An API server caches an authentication for ten seconds.
      await eventually(refused, { timeoutMs: 60_000, intervalMs: 1_000 });
    }
  }

  // Sequential: it restarts the controller, and all other tests are over.
  test("renews the token of a running container, which the host accepts until the proxy is gone", async () => {
    const name = uniqueName("renewed");
    const proxy = await run(name, { containers: [script("sleep 600 & wait")] });
    const read = (): Promise<string> => kubectl(west, ["exec", "-n", namespace, name, "--", "cat", `${FOLDER}/token`]);
    const before = await read();
    const ref = { namespace, name: apiSecretName(proxy.metadata.uid) };
    const annotations = { "legation.dev/renew-at": new Date().toISOString() };
    await member.patch(secrets, ref, { type: "merge", body: { metadata: { annotations } } });
    // A controller that has requested the token goes by its own clock.
    await legation.controller.stop();
    await legation.controller.start();
    // The kubelet updates a pod's volumes every minute to minute and a half.
    await eventually(async () => (await read()) !== before, { timeoutMs: 150_000, intervalMs: 2_000 });
    const after = await read();
    expect(JSON.parse(await bearer(after)).status.userInfo).toMatchObject({
      username: `system:serviceaccount:${namespace}:default`,
      extra: { "authentication.kubernetes.io/pod-uid": [proxy.metadata.uid] },
    });
    await client.delete(pods, { namespace, name });
    await podGone(client, namespace, name);
    // Also the earlier token.
    await expectVoid(before, after);
    await eventually(async () => (await member.find(secrets, ref)) === undefined, patient);
  });
}

whereRealNodesRun(inPods);
