import { timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { SignedIn } from "./model.ts";
import type { Viewer } from "./viewer.ts";

/** The decision on a request: to serve it, to sign its browser in, or to refuse it. */
export type Admission =
  | { readonly kind: "allowed"; readonly viewer: Viewer }
  /** Nothing that a request without a user gets is of a cluster. */
  | { readonly kind: "public" }
  | { readonly kind: "signIn"; readonly cookie: string }
  | RefusedAdmission;

export interface RefusedAdmission {
  readonly kind: "refused";
  readonly status: 401 | 403 | 429 | 502;
  readonly message: string;
}

/** A request as far as admission reads it. */
export interface PageRequest {
  /** Path with query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The route that serves the request: a file of the page, signing in, or any other, or none. */
  readonly route: "file" | "signIn" | "other";
  /** Address of the browser, or of a proxy that is not trusted to name it. */
  readonly from: string;
  /** Port at which the request arrived. */
  readonly port: number;
}

/** A bearer token for the host, and the only namespace that its user asks to see. */
export interface GivenToken {
  readonly token: string;
  readonly namespace?: string | undefined;
}

/** Decides who may use the page. */
export interface PageGate {
  readonly by: SignedIn["by"];
  admit(request: PageRequest): Admission;
  /** Signs a browser in with a token. Absent: no token is taken. */
  signIn?(given: GivenToken, request: PageRequest): Promise<Extract<Admission, { kind: "signIn" }> | RefusedAdmission>;
  /** Ends the session of a request. Returns the cookie that removes the browser's. */
  signOut?(request: PageRequest): string;
}

export function refused(status: RefusedAdmission["status"], message: string): RefusedAdmission {
  return { kind: "refused", status, message };
}

/** Reports whether a page of another origin makes the request. `origin`: that of the page itself. */
export function isForeign(headers: IncomingHttpHeaders, origin: string): boolean {
  const site = headers["sec-fetch-site"];
  return (headers.origin !== undefined && headers.origin !== origin) || site === "cross-site" || site === "same-site";
}

/** Reports whether the browser opens an address, by a link of any page. */
export function isNavigation(headers: IncomingHttpHeaders): boolean {
  return headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}

/** Returns the value of a cookie; empty without it. */
export function cookieOf({ cookie = "" }: IncomingHttpHeaders, name: string): string {
  const pair = cookie
    .split(";")
    .map((each) => each.trim())
    .find((each) => each.startsWith(`${name}=`));
  return pair?.slice(name.length + 1) ?? "";
}

/** Compares secrets in a time that does not depend on their content. */
export function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
