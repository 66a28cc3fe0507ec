import { accessAccountName } from "../../api/access.ts";
import type { Cluster } from "../../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { isKubeError } from "../../kube/errors.ts";
import { realClock } from "../../runtime/clock.ts";
import { credentialsSecretName, hostAccountName } from "../member/access.ts";
import { removeAccessAccount, removeAccessCredentials, storedAccess } from "../member/user-access.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import { readVersion } from "../shared/reading.ts";
import type { HostContext } from "../shared/session.ts";
import { waitFor, withoutRepeats } from "../shared/wait.ts";
import { FIELD_MANAGER, giveCredentials, isSameServer, memberAddress, storeAccessCredentials } from "./credentials.ts";
import { grantAccess, objectsInMember, systemNamespace } from "./grant-access.ts";
import { type PreparedAgent, prepareAgent, storedKubeconfig, waitForAgent } from "./join-agent.ts";
import {
  accessAccountObjects,
  type ImpersonationRules,
  impersonatingToken,
  impersonationOf,
  impersonationRefused,
} from "./user-access.ts";
import { type JoinContext, type JoinOptions, type ValidHost, validateHost, validateJoin } from "./validate.ts";

/** Joins a member, anew or again. Writes the host last: a failed join leaves it as it was. Resolves to the Ready Cluster. */
export async function joinByKubeconfig(options: JoinOptions, context: JoinContext): Promise<Stored<Cluster>> {
  const { name, hostName, timeoutMs } = options;
  const { host, signal, report } = context;
  const valid = await validateJoin(options, context);
  const { hostId, types, joined, access, operatorsSecret } = valid;
  await writeCluster(options, valid, context, { dryRun: true });
  let server: string | undefined;
  const before = await storedKubeconfig(name, context);
  const accessBefore = await storedAccess(name, context);
  try {
    const agent = options.agent && (await agentOf({ ...options, agent: options.agent }, valid, context));
    const grant = (impersonation: ImpersonationRules): Promise<void> => {
      const ofAccess = (role: Manifest): readonly Manifest[] =>
        access === undefined ? [] : accessAccountObjects(hostId, impersonation, role.metadata);
      const further = (role: Manifest): readonly Manifest[] => [...(agent?.objects ?? []), ...ofAccess(role)];
      const account = { hostId, hostName, cluster: name };
      return grantAccess(account, { types, definitions: options.definitions, further }, context);
    };
    const impersonation = access && impersonationOf(await readVersion(context.member.client, { signal }));
    await grant(impersonation ?? "any");
    const ofAccess = access && { hostId, cluster: name, prefix: access.prefix };
    let token = ofAccess && (await impersonatingToken(ofAccess, context));
    if (ofAccess !== undefined && token === undefined) {
      if (impersonation === "any") throw impersonationRefused(name);
      report(`${name}: constrained impersonation is switched off there: the account may impersonate any user`);
      await grant("any");
      token = await impersonatingToken(ofAccess, context);
      if (token === undefined) throw impersonationRefused(name);
    }
    if (agent !== undefined) await agent.storeToken();
    else {
      const joinedAddress = await memberAddress(options, joined, context);
      if (operatorsSecret === undefined) {
        await giveCredentials(hostId, joinedAddress, context);
        server = joinedAddress.address.server;
      } else report(`${host.cluster}: Secret ${operatorsSecret.name} stays: ${operatorsSecret.why}, so it is your own`);
      if (token !== undefined) await storeAccessCredentials(joinedAddress.address, token, context);
    }
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
  if (options.access === "remove") {
    await removeAccessCredentials(name, context);
    await removeAccessAccount(hostId, context);
  }
  if (options.agent === undefined && joined?.spec.agent !== undefined) {
    report(`${host.cluster}: Cluster ${name} is reached directly from now on, and not through its agent`);
  }
  report(`${host.cluster}: Cluster ${name} is stored; waiting until it is Ready`);
  if (options.agent === undefined) return await waitReady(name, server, timeoutMs, context);
  const begin = realClock.now();
  // An earlier connection to the member may be Ready still.
  if (!(await waitForAgent(() => storedKubeconfig(name, context), { before, timeoutMs }, signal)))
    throw noAgent(name, timeoutMs);
  const leftMs = (): number => Math.max(1, Math.ceil((timeoutMs - (realClock.now() - begin)) / 1000)) * 1000;
  const cluster = await waitReady(name, server, leftMs(), context);
  if (access === undefined) return cluster;
  const waiting = { before: accessBefore, timeoutMs: leftMs() };
  if (!(await waitForAgent(() => storedAccess(name, context), waiting, signal))) {
    report(`${name}: its agent has not brought a token for \`legation access\` yet: until then users do not reach it`);
  }
  return cluster;
}

/** Writes the host's side of a join, and returns the manifest of the member's. Rejects with `Failure`. */
export async function joinByManifest(
  options: AgentJoin,
  context: HostContext & { readonly role: Manifest },
): Promise<Manifest[]> {
  const { name, hostName } = options;
  const { report } = context;
  const valid = await validateHost(options, context);
  await writeCluster(options, valid, context, { dryRun: true });
  const { hostId, joined, access } = valid;
  const prepared = await agentOf(options, valid, context);
  await prepared.storeToken();
  await writeCluster(options, valid, context, {});
  if (options.access === "remove") {
    await removeAccessCredentials(name, context);
    report(
      `${name}: ServiceAccount ${SYSTEM_NAMESPACE}/${accessAccountName(hostId)} and its rights stay there until ` +
        "`legation join --remove-access --member-kubeconfig FILE`, or until an administrator of the member deletes them",
    );
  }
  const impersonation = impersonationOf(joined?.status?.version);
  const further = ({ metadata }: Manifest): readonly Manifest[] => {
    const ofAccess = access === undefined ? [] : accessAccountObjects(hostId, impersonation, metadata);
    return [...ofAccess, ...prepared.objects];
  };
  const account = { hostId, hostName, cluster: name };
  const { role, owned } = objectsInMember(context.role, account, { types: [], definitions: false, further });
  return [systemNamespace, role, ...owned];
}

type AgentJoin = JoinOptions & { readonly agent: NonNullable<JoinOptions["agent"]> };

function agentOf(
  options: AgentJoin,
  { hostId, joined, access }: Pick<ValidHost, "hostId" | "joined" | "access">,
  context: HostContext,
): Promise<PreparedAgent> {
  const homeApi = leadsToHomeApi(options, joined);
  const agent = { hostId, cluster: options.name, ...options.agent, homeApi, access: access !== undefined };
  return prepareAgent(agent, context);
}

/** Reports whether the agent leads pods to the host's API server: by this join, or by an earlier one. */
function leadsToHomeApi({ agent, homeApiServer }: JoinOptions, joined: Pick<Cluster, "spec"> | undefined): boolean {
  if (agent === undefined || homeApiServer !== undefined) return false;
  return agent.homeApi || (joined?.spec.agent?.homeAPI === true && joined.spec.homeAPI === undefined);
}

/** Creates the Cluster, or adds the given settings to the one that joined before. */
async function writeCluster(
  joinOptions: JoinOptions,
  { memberUid, joined, access }: Pick<ValidHost, "memberUid" | "joined" | "access">,
  { host, signal }: HostContext,
  options: { readonly dryRun?: boolean },
): Promise<void> {
  const { name, labels, homeApiServer, network, agent } = joinOptions;
  const write = { fieldManager: FIELD_MANAGER, signal, ...options };
  const annotations = memberUid === undefined ? {} : { [MEMBER_UID_ANNOTATION]: memberUid };
  const metadata = { name, labels: { ...labels }, annotations };
  const settings = {
    ...(homeApiServer === undefined ? {} : { homeAPI: { server: homeApiServer } }),
    ...(network === undefined || network === "" ? {} : { network }),
    ...(agent === undefined ? {} : { agent: leadsToHomeApi(joinOptions, joined) ? { homeAPI: true } : {} }),
    ...(access === undefined ? {} : { access }),
  };
  if (joined !== undefined) {
    // A member that is joined directly has an agent no more.
    const way = {
      ...(agent === undefined && joined.spec.agent !== undefined ? { agent: null } : {}),
      ...(agent?.homeApi === true && joined.spec.homeAPI !== undefined ? { homeAPI: null } : {}),
      ...(agent !== undefined && homeApiServer !== undefined ? { agent: { homeAPI: null } } : {}),
      ...(joinOptions.access === "remove" ? { access: null } : {}),
      ...(network === "" ? { network: null } : {}),
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
