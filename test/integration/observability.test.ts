import { afterAll, expect, test } from "vitest";
import { CLUSTERS_ANNOTATION, HOST_LABEL, LEADERLESS_ANNOTATION, OWNER_ANNOTATION } from "../../src/api/keys.ts";
import { clusters } from "../../src/api/resources.ts";
import { leases, namespaces, pods } from "../../src/kube/resources.ts";
import { conditionOf } from "../../src/pods/pod-state.ts";
import { freePort } from "../support/clusters/ports.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { ageLease } from "../support/harness/aged-lease.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { useLegation } from "../support/harness/legation.ts";
import { metricsOf } from "../support/harness/metrics-of.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podOf, podThat } from "../support/harness/pods-of.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { runCli } from "../support/legation/cli.ts";
import { type ReceivedSpan, startOtlpReceiver } from "../support/otlp/receiver.ts";

const port = await freePort();
const collector = await startOtlpReceiver();
afterAll(() => collector[Symbol.asyncDispose]());
const legation = useLegation({
  controllerFlags: [`--health-listen=127.0.0.1:${port}`, "--log-level=debug", "--not-placed-reason=Unschedulable"],
  env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_BSP_SCHEDULE_DELAY: "100" },
});
const clients = useClients();
const scrape = (): ReturnType<typeof metricsOf> => metricsOf(port);

test("reports the standard unschedulable condition of a pod that no member can have, where the operator asks for that", async () => {
  const { host } = clients();
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace(hostCluster(), { prefix: "nowhere", labels });
  const large = { containers: [{ name: "main", image: "main:1", resources: { requests: { cpu: "1000000" } } }] };
  await host.create(pods, delegatedPod(namespace, "delegated", { spec: large }));
  await host.create(pods, { metadata: { namespace, name: "own" }, spec: large });
  const conditions = ["delegated", "own"].map(async (name) => {
    const { status } = await podThat(host, namespace, name, (pod) => conditionOf(pod, "PodScheduled") !== undefined);
    return status?.conditions?.map(({ message: _, lastTransitionTime: __, ...condition }) => condition);
  });
  const [delegated, own] = await Promise.all(conditions);
  expect(delegated).toMatchObject([{ type: "PodScheduled", reason: "Unschedulable", observedGeneration: 1 }]);
  expect(delegated).toEqual(own);
});

test("counts every stage of a pod in the metrics, and logs every line about it with the proxy's uid", async () => {
  const { host, west } = clients();
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace(hostCluster(), { prefix: "observed", labels });
  expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
  const before = await scrape();
  const stage = (name: string): string => `legation_pod_stage_duration_seconds_count{stage="${name}",cluster="west"}`;
  const orphans = 'legation_orphans_total{cluster="west"}';

  await host.create(pods, delegatedPod(namespace, "web", { annotations: { [CLUSTERS_ANNOTATION]: "west" } }));
  const { metadata } = await podThat(host, namespace, "web", inPhase("Running"));
  const during = await eventually(async () => {
    const now = await scrape();
    return (now('legation_proxies{cluster="west"}') ?? 0) > 0 ? now : undefined;
  });
  for (const name of ["delegate", "bind", "status"]) {
    expect(during(stage(name)), name).toBeGreaterThan(before(stage(name)) ?? 0);
  }
  expect(during('legation_member_reachable{cluster="west"}')).toBe(1);
  expect(during('legation_delegates{cluster="west"}')).toBeGreaterThan(0);
  expect(during('legation_watches_opened_total{cluster="west",resource="pods"}')).toBeGreaterThan(0);
  expect(during('legation_watch_bytes_total{cluster="west",resource="pods"}')).toBeGreaterThan(1000);
  expect(
    during('legation_api_requests_total{cluster="west",verb="create",resource="pods",code="201"}'),
  ).toBeGreaterThan(0);
  expect(during('workqueue_adds_total{name="delegation",controller="delegation"}')).toBeGreaterThan(0);
  const expiry = during('legation_member_credentials_expiration_timestamp_seconds{cluster="west"}') ?? 0;
  expect(expiry).toBeGreaterThan(Date.now() / 1000);
  expect(during('legation_certificate_expiration_timestamp_seconds{certificate="kubelet"}')).toBeGreaterThan(
    Date.now() / 1000,
  );

  await host.delete(pods, { namespace, name: "web" });
  await podGone(host, namespace, "web");
  await podGone(west, namespace, "web");
  // A pod that ends leaves no orphan.
  expect((await scrape())(orphans)).toBe(before(orphans));

  const logged = (): { controller?: string; outcome?: string; proxy?: string }[] =>
    legation()
      .controller.log()
      .split("\n")
      .filter((line) => line.includes(`${namespace}/web"`) && line.endsWith("}"))
      .map((line) => JSON.parse(line));
  // The log arrives a little later, from another thread.
  const about = await eventually(() => {
    const lines = logged();
    return lines.some(({ outcome }) => outcome === "Released") && lines;
  });
  const messages = about.filter(({ controller }) => controller === "delegation").map(({ outcome }) => outcome);
  for (const outcome of ["Placing", "Binding", "Running", "Ending", "Released"]) expect(messages).toContain(outcome);
  for (const line of about) expect(line).toMatchObject({ proxy: metadata.uid });
});

/** Returns the spans of one pod's trace as a tree, in the order of their starts. */
function treeOf(spans: readonly ReceivedSpan[], parent?: string): unknown[] {
  return spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .toSorted((a, b) => a.startedAt - b.startedAt)
    .map(({ name, spanId }) => {
      const below = treeOf(spans, spanId);
      return below.length === 0 ? name : { [name]: below };
    });
}

test("traces a pod's life as one trace, with the requests of each step", async () => {
  const { host, west } = clients();
  const labels = { "legation.dev/delegation": "annotated" };
  const namespace = await freshNamespace(hostCluster(), { prefix: "traced", labels });
  const secret = { [CLUSTERS_ANNOTATION]: "west", "example.com/note": "nobody-else-may-read-this" };
  await host.create(pods, delegatedPod(namespace, "web", { annotations: secret }));
  const { metadata } = await podThat(host, namespace, "web", inPhase("Running"));
  await host.delete(pods, { namespace, name: "web" });
  await podGone(host, namespace, "web");
  const traceId = metadata.uid.replaceAll("-", "");
  const ofPod = (): ReceivedSpan[] => collector.spans.filter((span) => span.traceId === traceId);
  await eventuallyPasses(async () => expect(ofPod().map(({ name }) => name)).toContain("delete pod"));

  const spans = ofPod();
  const [root, ...others] = treeOf(spans);
  expect(others).toEqual([]);
  const names = Object.values(root ?? {}).flat();
  expect(Object.keys(root ?? {})).toEqual(["place pod"]);
  for (const part of [
    "wait for placement",
    "schedule delegate",
    { "bind proxy": ["create pods/binding"] },
    { "copy status": ["patch pods/status"] },
    { "delete delegate": ["delete pods"] },
    "delete pod",
    { "finish proxy": ["delete pods"] },
    { "release proxy": ["patch pods"] },
  ]) {
    expect(names).toContainEqual(part);
  }
  for (const { name, service, status, attributes } of spans) {
    expect(service).toBe("legation-controller");
    if (attributes["http.request.method"] !== undefined) continue;
    // A pod that is deleted while it runs fails, and some steps may be repeated.
    if (name === "bind proxy" || name === "release proxy") expect(status.code).not.toBe(2);
    expect(attributes).toMatchObject({
      "k8s.pod.uid": metadata.uid,
      "k8s.namespace.name": namespace,
      "k8s.pod.name": "web",
    });
  }
  const bound = spans.find(({ name }) => name === "bind proxy");
  expect(bound?.attributes).toMatchObject({ "k8s.cluster.name": "host", "legation.member": "west" });
  // The first attempt finds no namespace there, unless another object of the pod came first.
  const made = spans.find(({ name }) => name === "create delegate");
  const requests = spans.filter(({ parentSpanId }) => parentSpanId === made?.spanId);
  expect(requests.map(({ name }) => name)).toContain("create pods");
  expect(requests.map(({ attributes }) => attributes)).toContainEqual({
    "legation.cluster": "west",
    "http.request.method": "POST",
    "http.response.status_code": 201,
  });
  const review = collector.spans.find(
    ({ name, attributes }) => name === "admission review" && attributes["k8s.namespace.name"] === namespace,
  );
  expect(review).toMatchObject({
    service: "legation-webhook",
    attributes: { "k8s.pod.name": "web", "legation.review.verdict": "patched", "http.route": "/mutate/annotated" },
  });
  expect(collector.text).not.toContain("nobody-else-may-read-this");
  await podGone(west, namespace, "web");
});

/** Creates a pod in west with the marks of a delegate whose proxy never existed. */
async function leaveDelegate(prefix: string): Promise<string> {
  const { host, west } = clients();
  const namespace = await freshNamespace(memberCluster("west"), { prefix });
  const { uid: hostId } = (await host.get(namespaces, { name: "kube-system" })).metadata;
  const owner = { cluster: "host", namespace, name: "left", uid: "3f0c8a94-0000-4000-8000-000000000000" };
  const metadata = { labels: { [HOST_LABEL]: hostId }, annotations: { [OWNER_ANNOTATION]: JSON.stringify(owner) } };
  const left = delegatedPod(namespace, "left");
  await west.create(pods, { ...left, metadata: { ...left.metadata, ...metadata } });
  return namespace;
}

test("counts a delegate without a proxy as an orphan, and deletes it", async () => {
  const orphans = 'legation_orphans_total{cluster="west"}';
  const before = (await scrape())(orphans) ?? 0;
  const namespace = await leaveDelegate("orphaned");
  await podGone(clients().west, namespace, "left");
  await eventuallyPasses(async () => expect((await scrape())(orphans)).toBe(before + 1));
});

test("shows a delegate that a restored host does not know, and keeps it until the operator decides", async () => {
  const { host, west } = clients();
  const { controller } = legation();
  const ref = { namespace: "legation-system", name: "legation-controller" };
  await controller.stop();
  // A backup that is an hour old has this lease.
  await ageLease(host);
  const namespace = await leaveDelegate("restored");
  await controller.start();
  await eventuallyPasses(async () => expect((await scrape())('legation_delegates_held_total{cluster="west"}')).toBe(1));
  await eventuallyPasses(async () => expect(controller.log()).toContain("kept a delegate without a proxy"));
  await eventuallyPasses(async () =>
    expect((await host.get(clusters, { name: "west" })).status?.heldDelegates).toBe(1),
  );
  const { stdout } = await runCli(["status", `--kubeconfig=${hostCluster().kubeconfig}`]);
  expect(stdout).toContain("does not know them: 1 in west");
  // The next leader still knows.
  await controller.stop();
  await controller.start();
  await eventuallyPasses(async () => expect((await scrape())('legation_delegates_held_total{cluster="west"}')).toBe(1));
  expect((await podOf(west, namespace, "left"))?.metadata.deletionTimestamp).toBeUndefined();

  await controller.stop();
  await host.patch(leases, ref, {
    type: "merge",
    body: { metadata: { annotations: { [LEADERLESS_ANNOTATION]: null } } },
  });
  await controller.start();
  await podGone(west, namespace, "left");
});
