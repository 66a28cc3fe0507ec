import type { ClusterClient } from "../../kube/client.ts";
import { Failure } from "../shared/failure.ts";
import type { OpenMember } from "../shared/open-member.ts";
import type { ViewInUse } from "./view-in-use.ts";

/** A signed-in user of the page. All that the page shows is read with this user's own rights. */
export interface Viewer {
  readonly host: ClusterClient;
  readonly hostName: string;
  /** Namespace of planned objects that name none. */
  readonly namespace: string;
  /** The only namespace that is shown. Undefined: all. */
  readonly only?: string | undefined;
  /** The user's name on the host. Undefined if it was not asked for. */
  readonly user?: string | undefined;
  readonly view: ViewInUse;
  readonly members: MemberClients;
  /** Fires when the user is signed out. */
  readonly signal: AbortSignal;
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
