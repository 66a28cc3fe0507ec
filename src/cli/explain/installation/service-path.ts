import { RELAY_ANNOTATION } from "../../../api/keys.ts";
import type { Service, Stored } from "../../../api/kubernetes.ts";
import { portOf } from "../../../api/relay.ts";
import { noAnswer } from "../../../api/wording.ts";
import { hasWholeLabel } from "../../../copies/objects.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { statusMessage } from "../../../kube/json.ts";
import {
  cutAt,
  deniedRight,
  isAddressNotAllowed,
  isNoHttp,
  isRefused,
  LONGEST_PROBLEM,
  proxyProblem,
} from "../../../kube/messages.ts";
import { PortForwards } from "../../../kube/port-forward.ts";
import { pods as podResource, services } from "../../../kube/resources.ts";
import { connectTo } from "../../../relay/connect.ts";
import { podsTakingConnections, type RelayPod } from "../../../relay/endpoints.ts";
import { realClock } from "../../../runtime/clock.ts";
import { atMost } from "../../shared/at-most.ts";
import { Failure } from "../../shared/failure.ts";
import { readServiceFacts, type ServiceFacts, type ServiceInCluster, serviceStatus } from "../service.ts";
import { clusterText } from "../service-words.ts";
import { checked, type Deadline, deadlineOf } from "./check.ts";
import { type Finding, type FindingGroup, fail, forbidden, info, ok, skip, warn } from "./finding.ts";

/** A Service's port, of which the way is probed. */
export interface ServicePath {
  readonly namespace: string;
  readonly name: string;
  /** Number or name. Undefined: the first one. */
  readonly port: string | undefined;
}

interface Probe {
  readonly host: ClusterClient;
  readonly service: Stored<Service>;
  /** The pods that take its connections. */
  readonly pods: readonly RelayPod[];
  readonly deadline: Deadline;
}

// A kubelet accepts before it connects, and tells a refusal afterwards.
const REFUSED_WITHIN_MS = 2_000;
const AT_ONCE = 16;

const JOIN = "if the pod networks are joined, say so (legation join --network); else relay the Service: docs/relay.md";
const RELAYED = "see docs/relay.md#when-a-connection-is-reset";
const WHOLE = "see docs/whole-objects.md#give-members-a-service";
const LISTENS = "see that its container listens on that port";
const ADMITTED = `${LISTENS} at all addresses, and that routes and NetworkPolicies admit the way`;

/**
 * Opens a connection from each cluster of a Service to a pod in each cluster that it leads to, by the way that there is. Installs
 * nothing. Rejects with `Failure` for a Service or port that is not there, else with KubeError.
 */
export async function servicePathGroups(
  host: ClusterClient,
  { port: wanted, ...ref }: ServicePath,
  { signal: command, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<readonly FindingGroup[]> {
  const { facts } = await readServiceFacts(host, ref, command);
  const { service } = facts;
  const port = await targetPortOf(host, facts, wanted, command);
  const { clusters } = serviceStatus(facts);
  const pods = podsTakingConnections(facts.targets ?? facts.slices, port);
  return atMost(AT_ONCE, clusters, async (from) => {
    const deadline = deadlineOf(command, timeoutMs);
    const name = `From ${clusterText(from.cluster)}`;
    const findings = await checked(name, deadline, () => findingsFrom(from, { host, service, pods, deadline }));
    const none = skip("no endpoint takes connections", `legation status service/${ref.name} -n ${ref.namespace}`);
    return { name, findings: findings.length === 0 ? [none] : findings };
  });
}

/** Returns the name of the port in the slices of the Service's pods. */
async function targetPortOf(
  host: ClusterClient,
  { service, targets }: ServiceFacts,
  wanted: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const { name, namespace = "", annotations = {} } = service.metadata;
  const all = service.spec?.ports ?? [];
  const port = all.find((each) => wanted === undefined || String(each.port) === wanted || each.name === wanted);
  const refuse = (problem: string, remedy: string): Failure =>
    new Failure("usage", { object: `Service ${namespace}/${name}`, problem, remedy });
  const known = all.map((each) => each.port).join(", ") || "none";
  if (port === undefined) throw refuse(`has no port ${wanted ?? ""}`, `its ports are ${known}`);
  if ((port.protocol ?? "TCP") !== "TCP") throw refuse(`port ${port.port} is ${port.protocol}`, "name a port of TCP");
  const relay = annotations[RELAY_ANNOTATION];
  if (targets === undefined || relay === undefined) return port.name ?? "";
  const target = await host.find(services, { namespace, name: relay }, { signal });
  return (target && portOf(target, port.targetPort ?? port.port)?.name) ?? "";
}

async function findingsFrom(from: ServiceInCluster, probe: Probe): Promise<Finding[]> {
  const reached = from.reaches.map(({ cluster, how }) => {
    const pod = probe.pods.find((each) => each.cluster === cluster);
    const to = cluster === from.cluster ? "its own pods" : clusterText(cluster);
    if (pod === undefined) return skip(`${to}: no pod has these addresses, so no API server leads there`);
    if (how === "relay") return relayFinding(from, to, pod, probe);
    if (from.cluster === undefined) return networkFinding(to, pod, probe);
    return how === "local" ? listenFinding(to, pod, probe) : byHand(from.cluster, to, pod);
  });
  const unreached = from.unreached.map(({ cluster, why }) => {
    const pod = probe.pods.find((each) => each.cluster === cluster);
    const to = cluster === from.cluster ? "its own pods" : clusterText(cluster);
    if (hasWholeLabel(probe.service)) return info(`${to}: ${why}`, WHOLE);
    const isRelayed = probe.service.metadata.annotations?.[RELAY_ANNOTATION] !== undefined;
    if (isRelayed) return (from.cluster === undefined ? fail : info)(`${to}: ${why}`, RELAYED);
    // Slices on the host have the addresses of all members' pods, whatever leads there.
    if (from.cluster === undefined && pod !== undefined) return networkFinding(to, pod, probe, why);
    return info(`${to}: ${why}`, JOIN);
  });
  return Promise.all([...reached, ...unreached]);
}

/** The way of the host's relay: port-forward at the host's API server, or to a pod of the host its address. */
async function relayFinding(
  { cluster: from }: ServiceInCluster,
  to: string,
  pod: RelayPod,
  probe: Probe,
): Promise<Finding> {
  const by = `${to}, by the way of legation relay`;
  // This machine may not reach pods of the host, which the relay dials.
  if (pod.cluster === undefined) return networkFinding(by, pod, probe);
  const { problem, ms } = await forwarded(pod, probe);
  const where = `${by}: ${at(pod)}`;
  if (problem !== undefined) return failed(where, problem, `${LISTENS}; ${RELAYED}`);
  const relay = from === undefined ? "the relay itself was" : `the relays of ${from} and of the host were`;
  return ok(`${where} took a connection of the host's API server in ${ms} ms; ${relay} not passed`);
}

/** A member's way to its own pods, of which port-forward passes the kubelet alone. */
async function listenFinding(to: string, pod: RelayPod, probe: Probe): Promise<Finding> {
  const { problem, ms } = await forwarded(pod, probe);
  if (problem !== undefined) return failed(`${to}: ${at(pod)}`, problem, LISTENS);
  return ok(`${to}: ${at(pod)} took a connection of its kubelet in ${ms} ms; the member's pod network was not passed`);
}

/** No API server of a member leads to pods elsewhere. */
function byHand(from: string, to: string, { namespace, address, port }: RelayPod): Finding {
  const what = `${to}: not probed, since only pods in ${from} take this way`;
  return skip(what, `kubectl -n ${namespace} exec POD -- nc -zvw 5 ${address} ${port}, with a pod in ${from}`);
}

/** The pod network, as the host's API server is in it. `why`: no network is said to lead there. */
async function networkFinding(to: string, pod: RelayPod, probe: Probe, why?: string): Promise<Finding> {
  const { namespace, name, port } = pod;
  const began = performance.now();
  const ref = { namespace, name: `${name}:${port}` };
  const { signal, timeoutMs: allMs } = probe.deadline;
  const timeoutMs = allMs / 2;
  const where = `${to}: ${at(pod)}`;
  const unsaid = why === undefined ? "" : `; yet ${why}`;
  const refusal = await probe.host
    // Without the slash the API server answers by itself, with a redirection.
    .stream(podResource, ref, "proxy/", { query: new URLSearchParams(), signal, timeoutMs })
    .then((answer) => {
      answer.body?.destroy();
      // An answer of the pod's own is no Status.
      return answer.body === undefined ? statusMessage(answer.text) : undefined;
    })
    .catch((error: unknown) => {
      if (signal.aborted || !isKubeError(error, "AnswerLost")) throw error;
      return "silent" as const;
    });
  const took = `took a connection of the API server in ${since(began)} ms; routes of nodes and pods may differ from its own`;
  if (refusal === "silent") {
    const what = `${where}: ${noAnswer(timeoutMs)}: packets get lost, or the server waits for other words than HTTP's`;
    return warn(what, why === undefined ? ADMITTED : JOIN);
  }
  const problem = refusal && (proxyProblem(refusal) ?? refusal);
  if (problem === undefined || isNoHttp(problem)) return ok(`${where} ${took}${unsaid}`);
  if (isAddressNotAllowed(problem)) return skip(`${where}: API servers lead to no loopback address`);
  return failed(where, problem, why === undefined || isRefused(problem) ? ADMITTED : JOIN);
}

function failed(where: string, problem: string, remedy: string): Finding {
  // Container runtimes say it in a long sentence.
  const what = `${where}: ${isRefused(problem) ? "connection refused" : cutAt(problem, LONGEST_PROBLEM)}`;
  return deniedRight(problem) === undefined ? fail(what, remedy) : forbidden(what);
}

/** Opens a connection as `legation relay` does. */
async function forwarded(
  pod: RelayPod,
  { host, deadline: { signal, timeoutMs } }: Probe,
): Promise<{ readonly problem: string | undefined; readonly ms: number }> {
  const began = performance.now();
  const connected = await connectTo(new PortForwards(host), pod, signal);
  const ms = since(began);
  if (connected.stream === undefined) return { problem: signal.aborted ? noAnswer(timeoutMs) : connected.message, ms };
  const { stream } = connected;
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  stream.once("error", ({ message }) => resolve(message));
  for (const event of ["data", "end"]) stream.once(event, () => resolve(undefined));
  const timer = realClock.after(REFUSED_WITHIN_MS, () => resolve(undefined));
  const problem = await promise;
  timer.cancel();
  stream.destroy();
  return { problem, ms };
}

function at({ name, address, port }: RelayPod): string {
  return `pod ${name} at ${address}:${port}`;
}

function since(began: number): number {
  return Math.round(performance.now() - began);
}
