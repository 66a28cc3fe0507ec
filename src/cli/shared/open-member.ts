import { clusterNameProblem } from "../../api/cluster.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { Failure } from "./failure.ts";
import { readable } from "./reading.ts";

/** The user's way to a member. Rejects with `Failure` if there is none. */
export type OpenMember = (name: string) => Promise<ClusterClient>;

/** The user's ways to members. */
export interface MemberWays {
  readonly host: ClusterClient;
  readonly signal: AbortSignal;
  /** Opens a member through the host's API server, as the user. */
  readonly throughHost: OpenMember;
  /** Opens a member with a kubeconfig of the user's own, which then is the only way. */
  readonly own?: OpenMember | undefined;
  /** A further remedy where the member is closed to users. */
  readonly remedy?: string | undefined;
}

/** Returns how the user's own rights reach members: never the credentials that Legation has of them. */
export function memberOpener({ host, signal, throughHost, own, remedy }: MemberWays): OpenMember {
  if (own !== undefined) return own;
  return async (name) => {
    // The name becomes part of a path.
    const problem = clusterNameProblem(name);
    if (problem !== undefined) throw new Failure("usage", { object: "the name of the member", problem });
    const read = await readable(host.find(clusters, { name }, { signal }).then((cluster) => ({ cluster })));
    // Users who may not read the Cluster cannot know whether the member is open; its answer says so.
    if (read === undefined || read.cluster?.spec.access !== undefined) return throughHost(name);
    if (read.cluster === undefined)
      throw new Failure("failure", { object: `Cluster ${name}`, problem: "has not joined" });
    throw new Failure("failure", {
      object: name,
      problem: "is not open to users, so that its objects cannot be read with your own rights",
      remedy: `an administrator opens it with \`legation join ${name} --access\`${remedy === undefined ? "" : `; or ${remedy}`}`,
    });
  };
}

// More members than a user looks at before the session ends. Each name keeps a client.
const MOST_MEMBERS = 500;

/** Clients of members, each opened once. */
export class MemberClients {
  readonly #open: OpenMember;
  readonly #opened = new Map<string, Promise<ClusterClient>>();

  constructor(open: OpenMember) {
    this.#open = open;
  }

  /** Returns the client of a member. A refusal is not kept: the member may be opened to users later. */
  client(name: string): Promise<ClusterClient> {
    const opened = this.#opened.get(name);
    if (opened === undefined && this.#opened.size >= MOST_MEMBERS) {
      const problem = `is a further member of this session, which has opened ${MOST_MEMBERS}`;
      return Promise.reject(new Failure("failure", { object: name, problem, remedy: "sign in again" }));
    }
    const known = opened ?? this.#open(name);
    this.#opened.set(name, known);
    known.catch(() => this.#opened.delete(name));
    return known;
  }
}
