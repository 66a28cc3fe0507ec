import { createHash, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isKubeError } from "../../kube/errors.ts";
import { type Clock, every, type Timer } from "../../runtime/clock.ts";
import { networkOf } from "../../runtime/strangers.ts";
import {
  type Admission,
  cookieOf,
  type GivenToken,
  isForeign,
  isNavigation,
  type PageGate,
  type PageRequest,
  type RefusedAdmission,
  refused,
} from "./gate.ts";
import { SignInRate } from "./sign-in-rate.ts";
import type { Viewer } from "./viewer.ts";

/** The user of a token, until `close`. */
export interface TokenUser {
  readonly viewer: Viewer;
  /** Rejects once the API server refuses the token. */
  check(): Promise<void>;
  close(): Promise<void>;
}

export interface TokenSignInOptions {
  /** Names by which browsers reach the page. Those of this machine, as by `kubectl port-forward`, always are. */
  readonly hosts: readonly string[];
  /** Rejects with KubeError if the API server refuses the token. `namespace`: the one that the user asks to see. */
  readonly open: (token: string, namespace: string | undefined) => Promise<TokenUser>;
  readonly clock: Clock;
}

interface Session {
  readonly user: TokenUser;
  readonly endsAt: number;
  lastUsed: number;
}

const ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Strict";
const LOCAL_NAMES: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);
const LONGEST_SESSION_MS = 12 * 3_600_000;
const LONGEST_IDLE_MS = 30 * 60_000;
const CHECK_SESSIONS_MS = 60_000;
// Each has watches and memory of its own while a page is open.
const MOST_SESSIONS = 100;
// The oldest one ends, so that no user takes the room of all.
const MOST_OF_USER = 5;
// Bounds what strangers make the API server do, and leaves others room while one address signs in.
const MOST_SIGNING_IN = 8;
const MOST_OF_ADDRESS = 4;

/**
 * Admits browsers whose user gave a bearer token that the API server accepts. Tokens and sessions are in memory alone. Signing in
 * or out from pages of other origins is refused, as is every other host name.
 */
export class TokenSignIn implements PageGate {
  readonly by = "token";
  readonly #options: TokenSignInOptions;
  /** By digest, so that no comparison tells how much of a guess was right. */
  readonly #sessions = new Map<string, Session>();
  /** Addresses that sign in, once for each token. */
  readonly #signingIn: string[] = [];
  readonly #rate = new SignInRate();
  readonly #timer: Timer;

  constructor(options: TokenSignInOptions) {
    this.#options = options;
    this.#timer = every(options.clock, CHECK_SESSIONS_MS, () => {
      for (const [id, session] of this.#sessions) void this.#check(id, session);
      return true;
    });
  }

  admit({ route, headers }: PageRequest): Admission {
    const { host = "" } = headers;
    const name = host.replace(/:\d+$/, "").toLowerCase();
    if (!LOCAL_NAMES.has(name) && !this.#options.hosts.includes(name)) {
      return refused(403, `the address names ${host}, which its operator has not given this page as a name`);
    }
    // Links of other sites may lead to the page, whose own requests follow.
    const isLink = route === "file" && headers.origin === undefined && isNavigation(headers);
    if (!isLink && isForeign(headers, `https://${host}`))
      return refused(403, "the request comes from a page of another origin");
    const session = this.#sessions.get(sessionOf(headers));
    if (session !== undefined) {
      session.lastUsed = this.#options.clock.now();
      return { kind: "allowed", viewer: session.user.viewer };
    }
    if (route === "file" || route === "signIn") return { kind: "public" };
    return refused(401, "sign in first");
  }

  async signIn(
    { token, namespace }: GivenToken,
    { from, headers }: PageRequest,
  ): Promise<Extract<Admission, { kind: "signIn" }> | RefusedAdmission> {
    const { clock, open } = this.#options;
    const address = networkOf(from);
    const seconds = this.#rate.refusedFor(address, clock.now());
    if (seconds !== undefined) {
      return refused(429, `too many tokens came from your address: try again in ${seconds} seconds`);
    }
    const ofAddress = this.#signingIn.filter((each) => each === address).length;
    if (
      ofAddress >= MOST_OF_ADDRESS ||
      this.#signingIn.length >= MOST_SIGNING_IN ||
      this.#sessions.size + this.#signingIn.length >= MOST_SESSIONS
    ) {
      return refused(429, "too many users sign in, or are signed in: try again later");
    }
    this.#signingIn.push(address);
    try {
      const user = await open(token, namespace);
      this.#endOldest(user.viewer.user);
      const id = randomBytes(32).toString("base64url");
      const now = clock.now();
      this.#sessions.set(digestOf(id), { user, endsAt: now + LONGEST_SESSION_MS, lastUsed: now });
      return { kind: "signIn", cookie: `${cookieName(headers)}=${id}; ${ATTRIBUTES}` };
    } catch (error) {
      if (isKubeError(error, "Unauthorized")) return refused(401, "the API server does not accept this token");
      const why = isKubeError(error) ? error.detail : "it cannot be asked";
      return refused(502, `the API server was not asked whether it accepts the token: ${why}`);
    } finally {
      this.#signingIn.splice(this.#signingIn.indexOf(address), 1);
    }
  }

  signOut({ headers }: PageRequest): string {
    this.#end(sessionOf(headers));
    return `${cookieName(headers)}=; Max-Age=0; ${ATTRIBUTES}`;
  }

  async close(): Promise<void> {
    this.#timer.cancel();
    const users = [...this.#sessions.values()].map(({ user }) => user.close());
    this.#sessions.clear();
    await Promise.all(users);
  }

  /** Makes room for one more session of the user. */
  #endOldest(name: string | undefined): void {
    // In the order in which they began.
    const own = [...this.#sessions].filter(([, { user }]) => user.viewer.user === name);
    for (const [id] of own.slice(0, Math.max(0, own.length + 1 - MOST_OF_USER))) this.#end(id);
  }

  #end(id: string): void {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    void session?.user.close();
  }

  /** Ends a session that is old or unused, or whose token expired. */
  async #check(id: string, { user, endsAt, lastUsed }: Session): Promise<void> {
    const now = this.#options.clock.now();
    const isIdle = user.viewer.view.users === 0 && now - lastUsed > LONGEST_IDLE_MS;
    if (isIdle || now > endsAt) return this.#end(id);
    await user.check().catch((error: unknown) => {
      if (isKubeError(error, "Unauthorized")) this.#end(id);
    });
  }
}

/**
 * Returns a name for each port, since cookies belong to a host and not to a port. `__Host-`: browsers take it over TLS only, for
 * this host only, for all paths.
 */
function cookieName({ host = "" }: IncomingHttpHeaders): string {
  return `__Host-legation-ui-${/:(\d+)$/.exec(host)?.[1] ?? "443"}`;
}

function sessionOf(headers: IncomingHttpHeaders): string {
  return digestOf(cookieOf(headers, cookieName(headers)));
}

function digestOf(id: string): string {
  return createHash("sha256").update(id).digest("base64");
}
