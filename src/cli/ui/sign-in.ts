import { randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** The decision on a request: to serve it, to sign its browser in, or to refuse it. */
export type Admission =
  | { readonly kind: "allowed" }
  | { readonly kind: "signIn"; readonly cookie: string }
  | { readonly kind: "refused"; readonly status: 401 | 403; readonly message: string };

/** A request as far as admission reads it. */
export interface PageRequest {
  /** Path with query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Port at which the request arrived. */
  readonly port: number;
}

const LOCAL_NAMES = ["127.0.0.1", "localhost", "[::1]"];
const AGAIN = "run `legation ui` again for a new address";

/**
 * Admits the browser that opens the address with the one-time token, and no other. Pages of other origins are refused, also those
 * that name this machine by another host name (DNS rebinding).
 */
export class SignIn {
  readonly #token = randomBytes(24).toString("base64url");
  readonly #session = randomBytes(24).toString("base64url");
  #isUsed = false;

  /** Returns the path of the address to open, once. */
  get path(): string {
    return `/?token=${this.#token}`;
  }

  admit({ url, headers, port }: PageRequest): Admission {
    const { host = "", origin, cookie = "" } = headers;
    const hosts = LOCAL_NAMES.map((name) => `${name}:${port}`);
    if (!hosts.includes(host)) return refused(403, `the address names ${host}: use http://${hosts[0]}`);
    const site = headers["sec-fetch-site"];
    const isForeign =
      (origin !== undefined && origin !== `http://${host}`) || site === "cross-site" || site === "same-site";
    const name = cookieName(port);
    const given = new URL(url, "http://page").searchParams.get("token");
    if (given !== null) {
      if (this.#isUsed || !isSame(given, this.#token)) return refused(401, `this address was used already; ${AGAIN}`);
      this.#isUsed = true;
      return { kind: "signIn", cookie: `${name}=${this.#session}; Path=/; HttpOnly; SameSite=Strict` };
    }
    if (isForeign) return refused(403, "the request comes from a page of another origin");
    const sent = cookie
      .split(";")
      .map((pair) => pair.trim())
      .find((pair) => pair.startsWith(`${name}=`));
    if (isSame(sent?.slice(name.length + 1) ?? "", this.#session)) return { kind: "allowed" };
    return refused(401, `this browser has not signed in: open the address that \`legation ui\` printed, or ${AGAIN}`);
  }
}

/** Returns a name for each server, since cookies belong to a host and not to a port. */
function cookieName(port: number): string {
  return `legation-ui-${port}`;
}

function refused(status: 401 | 403, message: string): Admission {
  return { kind: "refused", status, message };
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
