import { createHash, randomBytes } from "node:crypto";
import { isKubeError } from "../../kube/errors.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { type Admission, cookieOf, type Gate, isForeign, type PageRequest, type Refused, refused } from "./gate.ts";
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
  /** Rejects with KubeError if the API server refuses the token. */
  readonly open: (token: string) => Promise<TokenUser>;
  readonly clock: Clock;
}

interface Session {
  readonly user: TokenUser;
  readonly endsAt: number;
  lastUsed: number;
}

// `__Host-`: browsers take it over TLS only, for this host only, for all paths.
const COOKIE = "__Host-legation-ui";
const ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Strict";
const LOCAL_NAMES: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);
const LONGEST_MS = 12 * 3_600_000;
const LONGEST_IDLE_MS = 30 * 60_000;
const CHECK_EVERY_MS = 60_000;
// Each has watches and memory of its own while a page is open.
const MOST_SESSIONS = 100;
// Bounds what strangers make the API server do.
const MOST_SIGNING_IN = 8;

/**
 * Admits browsers whose user gave a bearer token that the API server accepts. Tokens and sessions are in memory alone. Signing in
 * or out from pages of other origins is refused, as is every other host name.
 */
export class TokenSignIn implements Gate {
  readonly by = "token";
  readonly #options: TokenSignInOptions;
  /** By digest, so that no comparison tells how much of a guess was right. */
  readonly #sessions = new Map<string, Session>();
  #signingIn = 0;
  #timer: Timer | undefined;

  constructor(options: TokenSignInOptions) {
    this.#options = options;
  }

  admit({ url, method, headers }: PageRequest): Admission {
    const { host = "" } = headers;
    const name = host.replace(/:\d+$/, "").toLowerCase();
    if (!LOCAL_NAMES.has(name) && !this.#options.hosts.includes(name)) {
      return refused(403, `the address names ${host}, which is not one of --hosts`);
    }
    if (isForeign(headers, `https://${host}`)) return refused(403, "the request comes from a page of another origin");
    const session = this.#sessions.get(digestOf(cookieOf(headers, COOKIE)));
    if (session !== undefined) {
      session.lastUsed = this.#options.clock.now();
      return { kind: "allowed", viewer: session.user.viewer };
    }
    if (!url.startsWith("/api/") || (url === "/api/session" && method === "POST")) return { kind: "public" };
    return refused(401, "sign in first");
  }

  async signIn(token: string): Promise<Extract<Admission, { kind: "signIn" }> | Refused> {
    const { clock, open } = this.#options;
    if (this.#signingIn >= MOST_SIGNING_IN || this.#sessions.size >= MOST_SESSIONS) {
      return refused(429, "too many users sign in, or are signed in: try again later");
    }
    this.#signingIn += 1;
    try {
      const user = await open(token);
      const id = randomBytes(32).toString("base64url");
      const now = clock.now();
      this.#sessions.set(digestOf(id), { user, endsAt: now + LONGEST_MS, lastUsed: now });
      this.#schedule();
      return { kind: "signIn", cookie: `${COOKIE}=${id}; ${ATTRIBUTES}` };
    } catch (error) {
      if (isKubeError(error, "Unauthorized")) return refused(401, "the API server does not accept this token");
      const why = isKubeError(error) ? error.detail : "it cannot be asked";
      return refused(502, `the API server was not asked whether it accepts the token: ${why}`);
    } finally {
      this.#signingIn -= 1;
    }
  }

  signOut({ headers }: PageRequest): string {
    this.#end(digestOf(cookieOf(headers, COOKIE)));
    return `${COOKIE}=; Max-Age=0; ${ATTRIBUTES}`;
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    const users = [...this.#sessions.values()].map(({ user }) => user.close());
    this.#sessions.clear();
    await Promise.all(users);
  }

  #end(id: string): void {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    void session?.user.close();
  }

  #schedule(): void {
    this.#timer ??= this.#options.clock.after(CHECK_EVERY_MS, () => {
      this.#timer = undefined;
      void this.#endOld();
    });
  }

  /** Ends sessions that are old or unused, or whose tokens expired. */
  async #endOld(): Promise<void> {
    const now = this.#options.clock.now();
    await Promise.all(
      [...this.#sessions].map(async ([id, { user, endsAt, lastUsed }]) => {
        const isIdle = user.viewer.view.users === 0 && now - lastUsed > LONGEST_IDLE_MS;
        if (isIdle || now > endsAt) return this.#end(id);
        try {
          await user.check();
        } catch (error) {
          if (isKubeError(error, "Unauthorized")) this.#end(id);
        }
      }),
    );
    if (this.#sessions.size > 0) this.#schedule();
  }
}

function digestOf(id: string): string {
  return createHash("sha256").update(id).digest("base64");
}
