import { randomBytes } from "node:crypto";
import { type Admission, cookieOf, isForeign, isSame, type PageGate, type PageRequest, refused } from "./gate.ts";
import type { Viewer } from "./viewer.ts";

const LOCAL_NAMES = ["127.0.0.1", "localhost", "[::1]"];
const AGAIN = "run `legation ui` again for a new address";

/**
 * Admits the browser that opens the address with the one-time token, and no other. Pages of other origins are refused, also those
 * that name this machine by another host name (DNS rebinding).
 */
export class SignIn implements PageGate {
  readonly by = "address";
  readonly #viewer: Viewer;
  readonly #token = randomBytes(24).toString("base64url");
  readonly #session = randomBytes(24).toString("base64url");
  #isUsed = false;

  constructor(viewer: Viewer) {
    this.#viewer = viewer;
  }

  /** Returns the path of the address to open, once. */
  get path(): string {
    return `/?token=${this.#token}`;
  }

  admit({ url, headers, port }: PageRequest): Admission {
    const { host = "" } = headers;
    const hosts = LOCAL_NAMES.map((name) => `${name}:${port}`);
    if (!hosts.includes(host)) return refused(403, `the address names ${host}: use http://${hosts[0]}`);
    const name = cookieName(port);
    const given = new URLSearchParams(url.split("?", 2)[1]).get("token");
    if (given !== null) {
      if (this.#isUsed || !isSame(given, this.#token)) return refused(401, `this address was used already; ${AGAIN}`);
      this.#isUsed = true;
      return { kind: "signIn", cookie: `${name}=${this.#session}; Path=/; HttpOnly; SameSite=Strict` };
    }
    if (isForeign(headers, `http://${host}`)) return refused(403, "the request comes from a page of another origin");
    if (isSame(cookieOf(headers, name), this.#session)) return { kind: "allowed", viewer: this.#viewer };
    return refused(401, `this browser has not signed in: open the address that \`legation ui\` printed, or ${AGAIN}`);
  }
}

/** Returns a name for each server, since cookies belong to a host and not to a port. */
function cookieName(port: number): string {
  return `legation-ui-${port}`;
}
