import type { Cluster } from "../../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { isKubeError } from "../../kube/errors.ts";
import { realClock } from "../../runtime/clock.ts";
import { credentialsSecretName, hostAccountName } from "../member/access.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import type { HostContext } from "../shared/session.ts";
import { waitFor, withoutRepeats } from "../shared/wait.ts";
import { FIELD_MANAGER, giveCredentials, isSameServer } from "./credentials.ts";
import { accessObjects, grantAccess, systemNamespace } from "./grant-access.ts";
import { typeObjects } from "./grant-types.ts";
import { prepareAgent, storedKubeconfig, waitForAgent } from "./join-agent.ts";
import { type JoinContext, type JoinOptions, type ValidJoin, validateHost, validateJoin } from "./validate.ts";

/**
 * Joins a member, also one that has joined before. The host is written last, so a join that fails leaves it as it was. Resolves
 * to the Cluster once it is Ready.
 */
export async function join(options: JoinOptions, context: JoinContext): Promise<Stored<Cluster>> {
  const { name, hostName, timeoutMs } = options;
  const { host, report } = context;
  const valid = await validateJoin(options, context);
  const { hostId, types, joined, operatorsSecret } = valid;
  await writeCluster(options, valid, context, { dryRun: true });
  let server: string | undefined;
  const before = await storedKubeconfig(name, context);
  try {
    const agent =
      options.agent === undefined
        ? undefined
        : await prepareAgent(
            { hostId, cluster: name, ...options.agent, homeApi: leadsToHomeApi(options, joined) },
            context,
          );
    const objects = { types, definitions: options.definitions, agent: agent?.objects ?? [] };
    await grantAccess({ hostId, hostName, cluster: name }, objects, context);
    if (agent !== undefined) await agent.storeToken();
    else if (operatorsSecret === undefined) server = await giveCredentials(options, valid, context);
    else report(`${host.cluster}: Secret ${operatorsSecret.name} stays: ${operatorsSecret.why}, so it is your own`);
    await writeCluster(options, valid, context, {});
  } catch (error) {
    const account = `ServiceAccount ${SYSTEM_NAMESPACE}/${hostAccountName(hostId)}`;
    const completes = "`legation join` again completes the join";
    const ends = `${completes}, \`legation unjoin ${name} --member-kubeconfig FILE\` removes them`;
    report(
      `${name}: ${account} and its rights stay as far as they were made: ${joined === undefined ? ends : completes}`,
    );
    throw error;
  }
  report(`${host.cluster}: Cluster ${name} is stored; waiting until it is Ready`);
  if (options.agent === undefined) return await waitReady(name, server, timeoutMs, context);
  const begin = realClock.now();
  // An earlier connection to the member may be Ready still.
  if (!(await waitForAgent(name, { before, timeoutMs }, context))) throw noAgent(name, timeoutMs);
  const leftSeconds = Math.ceil((timeoutMs - (realClock.now() - begin)) / 1000);
  return await waitReady(name, server, Math.max(1, leftSeconds) * 1000, context);
}

/**
 * Joins a member that is not at hand: writes the host's side, and returns the manifest of the member's. Rejects with `Failure` for a
 * Cluster with credentials of an operator's own.
 */
export async function joinByManifest(
  options: JoinOptions & { readonly agent: NonNullable<JoinOptions["agent"]> },
  context: HostContext & { readonly role: Manifest },
): Promise<Manifest[]> {
  const { name, hostName, agent } = options;
  const valid = await validateHost(options, context);
  await writeCluster(options, valid, context, { dryRun: true });
  const { hostId, joined } = valid;
  const objects = accessObjects(context.role, { hostId, hostName, cluster: name });
  const prepared = await prepareAgent(
    { hostId, cluster: name, ...agent, homeApi: leadsToHomeApi(options, joined) },
    context,
  );
  await prepared.storeToken();
  await writeCluster(options, valid, context, {});
  const { role, user, binding } = objects;
  return [
    systemNamespace,
    role,
    user,
    binding,
    ...typeObjects({ types: [] }, { hostId, metadata: role.metadata }),
    ...prepared.objects,
  ];
}

/** Reports whether the agent leads pods to the host's API server: by this join, or by an earlier one. */
function leadsToHomeApi({ agent, homeApiServer }: JoinOptions, joined: Pick<Cluster, "spec"> | undefined): boolean {
  if (agent === undefined || homeApiServer !== undefined) return false;
  return agent.homeApi || (joined?.spec.agent?.homeAPI === true && joined.spec.homeAPI === undefined);
}

/** Creates the Cluster, or adds the given settings to the one that joined before. */
async function writeCluster(
  joinOptions: JoinOptions,
  { memberUid, joined }: Pick<ValidJoin, "memberUid" | "joined">,
  { host, signal }: HostContext,
  options: { readonly dryRun?: boolean },
): Promise<void> {
  const { name, labels, homeApiServer, agent } = joinOptions;
  const write = { fieldManager: FIELD_MANAGER, signal, ...options };
  const annotations = memberUid === undefined ? {} : { [MEMBER_UID_ANNOTATION]: memberUid };
  const metadata = { name, labels: { ...labels }, annotations };
  const settings = {
    ...(homeApiServer === undefined ? {} : { homeAPI: { server: homeApiServer } }),
    ...(agent === undefined ? {} : { agent: leadsToHomeApi(joinOptions, joined) ? { homeAPI: true } : {} }),
  };
  if (joined !== undefined) {
    // A member that is joined directly has an agent no more.
    const way = {
      ...(agent === undefined && joined.spec.agent !== undefined ? { agent: null } : {}),
      ...(agent?.homeApi === true && joined.spec.homeAPI !== undefined ? { homeAPI: null } : {}),
      ...(agent !== undefined && homeApiServer !== undefined ? { agent: { homeAPI: null } } : {}),
    };
    const body = { metadata: { ...metadata, uid: joined.metadata.uid }, spec: { ...settings, ...way } };
    await host.patch(clusters, { name }, { type: "merge", body }, write);
    return;
  }
  const spec = { credentialsSecret: { name: credentialsSecretName(name) }, ...settings };
  try {
    await host.create(clusters, { apiVersion: "legation.dev/v1alpha1", kind: "Cluster", metadata, spec }, write);
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists")) throw error;
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem: "another `legation join` has taken this name meanwhile",
      remedy: "look at `legation status`; to join this member too, choose another name",
      cause: error,
    });
  }
}

function noAgent(name: string, timeoutMs: number): Failure {
  return new Failure("notReady", {
    object: `Cluster ${name}`,
    problem: `no agent with the token of this join has connected within ${timeoutMs / 1000} s`,
    remedy:
      "look at the agent's log in the member, and whether the controller runs with --hub-listen; it has joined, and becomes Ready " +
      "once its agent connects within an hour",
  });
}

/** Waits until the controller reports the Cluster as Ready, at `server` if one is given. Rejects with `Failure` on timeout. */
async function waitReady(
  name: string,
  server: string | undefined,
  timeoutMs: number,
  { host, signal, report }: HostContext,
): Promise<Stored<Cluster>> {
  let problem: string | undefined;
  const tell = withoutRepeats(report);
  const ready = await waitFor(
    async () => {
      const cluster = await host.get(clusters, { name }, { signal });
      const { server: current, conditions = [] } = cluster.status ?? {};
      // Version 0.1.0 of the controller does not report its server.
      if (server !== undefined && current !== undefined && !isSameServer(current, server)) {
        problem = `the controller has not gone over to ${server} yet`;
        return undefined;
      }
      const condition = conditions.find(({ type }) => type === "Ready");
      if (condition?.status === "True") return cluster;
      problem = condition?.message ?? problem;
      if (problem !== undefined) tell(`${name}: not ready: ${problem}`);
      return undefined;
    },
    { timeoutMs, signal },
  );
  if (ready !== undefined) return ready;
  const seconds = timeoutMs / 1000;
  throw new Failure("notReady", {
    object: `Cluster ${name}`,
    field: "status.conditions[Ready]",
    problem:
      problem === undefined
        ? `no controller reported on it within ${seconds} s`
        : `was not True within ${seconds} s: ${problem}`,
    remedy:
      `${problem === undefined ? "check that `legation controller` runs" : "repair that"}: it has joined, and becomes Ready ` +
      `then; \`legation join\` again replaces credentials and address, \`legation unjoin ${name}\` takes it out`,
  });
}
