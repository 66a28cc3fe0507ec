import { type ClusterCondition, NETWORK_CONDITION } from "../../api/cluster-status.ts";
import { VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeNode, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { Networks } from "../../copies/joined-slices.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { nodes } from "../../kube/resources.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { ControllerEvents } from "../events.ts";
import { overlapsIn, type PodNetwork } from "./pod-networks.ts";

export interface JoinedNetworksOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "cluster" | "members">;
  readonly events: Events<ControllerEvents>;
  /** The host's network. Undefined: its pods are reached by no member. */
  readonly network: string | undefined;
}

// No name of a Cluster.
const HOST = "the host";

/** The networks in which members reach each other's pods, as their Clusters say, without members whose pods have others' addresses. */
export class JoinedNetworks {
  readonly #options: JoinedNetworksOptions;
  readonly #hostNodes: Reflector<KubeNode>;
  #areHostNodesWatched = false;
  /** Each member's CIDRs when they were last compared. */
  readonly #seen = new WeakMap<Member, string>();
  #now: Networks;
  #problems: ReadonlyMap<string, string> = new Map();

  constructor(options: JoinedNetworksOptions) {
    this.#options = options;
    this.#now = { host: options.network, members: new Map() };
    const { host, clock, log, events } = options;
    this.#hostNodes = new Reflector({
      client: host,
      resource: nodes,
      labelSelector: `!${VIRTUAL_NODE_LABEL}`,
      transform: withCidrsOnly,
      clock,
      log,
      onEvent: (event) => {
        // The state tells when the list is complete. Heartbeats change no CIDR.
        if (!this.#hostNodes.store.synced) return;
        if (event.type === "updated" && `${cidrsOf(event.object)}` === `${cidrsOf(event.previous)}`) return;
        this.update();
      },
      onState: () => this.update(),
    });
    events.on("memberNodes", (member) => {
      if (member.cluster.spec.network === undefined) return;
      // Most changes of nodes are none of their CIDRs.
      const seen = `${member.nodesRead} ${cidrsIn(member).join()}`;
      if (this.#seen.get(member) === seen) return;
      this.#seen.set(member, seen);
      this.update();
    });
  }

  stop(): Promise<void> {
    return this.#hostNodes.stop();
  }

  /** Another object after every change. */
  get now(): Networks {
    return this.#now;
  }

  get areAny(): boolean {
    return this.#now.members.size > 0;
  }

  isJoined(member: string): boolean {
    return this.#now.members.has(member);
  }

  /** Returns why a member is left out of its network. Undefined if it is not. */
  problem(member: string): string | undefined {
    return this.#problems.get(member);
  }

  /** Reads the Clusters and the pod CIDRs again, and tells of a change. */
  update(): void {
    const { registry, network: ofHost, events } = this.#options;
    const byNetwork = Map.groupBy(
      registry.members().filter(({ cluster }) => cluster.spec.network !== undefined),
      ({ cluster }) => cluster.spec.network ?? "",
    );
    if (ofHost !== undefined && byNetwork.has(ofHost) && !this.#areHostNodesWatched) {
      this.#areHostNodesWatched = true;
      this.#hostNodes.start();
    }
    const problems = new Map([...byNetwork].flatMap(([network, members]) => [...this.#problemsIn(network, members)]));
    const joined = [...byNetwork].flatMap(([network, members]) =>
      members.flatMap(({ name }): [string, string][] => (problems.has(name) ? [] : [[name, network]])),
    );
    const isSame = areEqual(this.#problems, problems) && areEqual(this.#now.members, new Map(joined));
    if (isSame) return;
    this.#problems = problems;
    this.#now = { host: ofHost, members: new Map(joined) };
    events.emit("networks");
  }

  #problemsIn(network: string, members: readonly Member[]): Map<string, string> {
    const ofHost = network === this.#options.network ? this.#hostNodes.store : undefined;
    const clusters: PodNetwork[] = [
      ...(ofHost === undefined ? [] : [{ name: HOST, cidrs: ofHost.list().flatMap(cidrsOf) }]),
      ...members
        .toSorted((one, other) => this.#precedence(one, other))
        .map((member) => ({ name: member.name, cidrs: cidrsIn(member) })),
    ];
    const problems = new Map(
      [...overlapsIn(clusters)].map(([name, { cidr, other, otherCidr }]) => [
        name,
        `its pods have addresses of ${cidr}, and those of ${other} addresses of ${otherCidr}: it is left out of network ` +
          `${network}, since clients would reach the wrong pods`,
      ]),
    );
    // A cluster that was not read since this controller began may be the other one.
    const areAllRead = members.every(({ nodesRead }) => nodesRead) && ofHost?.synced !== false;
    if (!areAllRead) {
      for (const member of members) {
        const known = this.#conditionOf(member)?.message;
        if (known !== undefined && !problems.has(member.name)) problems.set(member.name, known);
      }
    }
    return problems;
  }

  /** A member that was left out stays so; then the older one goes first. */
  #precedence(one: Member, other: Member): number {
    const wasLeftOut = (member: Member): number => Number(this.#conditionOf(member) !== undefined);
    const created = ({ cluster }: Member): string => cluster.metadata.creationTimestamp ?? "";
    return (
      wasLeftOut(one) - wasLeftOut(other) ||
      created(one).localeCompare(created(other)) ||
      one.name.localeCompare(other.name)
    );
  }

  #conditionOf({ name }: Member): ClusterCondition | undefined {
    const { status } = this.#options.registry.cluster(name) ?? {};
    return status?.conditions?.find(({ type }) => type === NETWORK_CONDITION);
  }
}

function withCidrsOnly({ metadata, spec }: Stored<KubeNode>): Stored<KubeNode> {
  const { name, uid, resourceVersion } = metadata;
  return { metadata: { name, uid, resourceVersion }, spec: { podCIDRs: cidrsOf({ ...(spec && { spec }) }) } };
}

function cidrsIn({ cluster, nodes: all }: Member): readonly string[] {
  return cluster.spec.podCIDRs ?? all.flatMap(cidrsOf);
}

function cidrsOf({ spec }: KubeNode): string[] {
  return spec?.podCIDRs ?? (spec?.podCIDR === undefined ? [] : [spec.podCIDR]);
}

function areEqual(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([key, value]) => other.get(key) === value);
}
