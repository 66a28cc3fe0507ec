import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { type Certificate, issueAuthority, issueServing } from "../certificates/issue.ts";
import { renewalReason } from "../certificates/validity.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { SigningRequest } from "./signing-request.ts";

/** Where the serving certificate comes from. */
export type CertificateSource =
  /** An authority of this process's own, for API servers that do not verify kubelets. */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that somebody else keeps current. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string };

const DAY_MS = 24 * 60 * 60_000;
const LIFETIME_MS = 365 * DAY_MS;
// What is mounted from a Secret changes within a minute of it; the end of a certificate's life is known months before.
const FILES_PERIOD_MS = 10_000;
const OWN_PERIOD_MS = 60 * 60_000;
// Whoever approves by a program does so at once, and nobody can read a log before.
const ASKED_PERIOD_MS = 2_000;

export interface ServingCertificateOptions {
  readonly source: CertificateSource;
  /** Asks the source's signer; for that kind only. */
  readonly request?: SigningRequest;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The serving certificate of the virtual nodes, kept valid while they serve. */
export class ServingCertificate {
  readonly #source: CertificateSource;
  readonly #request: SigningRequest | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  #current: Certificate | undefined;
  /** The current one is what the signer gave. */
  #signed = false;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: ServingCertificateOptions) {
    this.#source = options.source;
    this.#request = options.request;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** The certificate to start with. Rejects when there is none to be had. */
  async load(): Promise<Certificate> {
    this.#current = await this.#next();
    return this.#current;
  }

  /** Calls `serve` with each new certificate, until stopped. */
  follow(serve: (certificate: Certificate) => void): void {
    if (this.#stopped) return;
    this.#timer = this.#clock.after(this.#periodMs, () => void this.#look(serve));
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  get #periodMs(): number {
    if (this.#source.kind === "files") return FILES_PERIOD_MS;
    return this.#source.kind === "own" || !this.#due ? OWN_PERIOD_MS : ASKED_PERIOD_MS;
  }

  /** The signer is to give another one. */
  get #due(): boolean {
    if (!this.#signed || this.#current === undefined) return true;
    return renewalReason(this.#current.cert, { now: this.#clock.now() }) !== undefined;
  }

  async #look(serve: (certificate: Certificate) => void): Promise<void> {
    try {
      const next = await this.#next();
      if (!this.#stopped && next.cert !== this.#current?.cert) {
        this.#current = next;
        serve(next);
        this.#log.info("kubelet API's serving certificate renewed");
      }
    } catch (error) {
      this.#log.warn({ err: error }, "kubelet API's serving certificate not renewed: the one before is kept");
    }
    this.follow(serve);
  }

  async #next(): Promise<Certificate> {
    if (this.#source.kind === "files") {
      const { certFile, keyFile } = this.#source;
      const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
      // Throws when one of the two has been replaced already and the other has not.
      createSecureContext({ cert, key });
      return { cert, key };
    }
    if (this.#source.kind === "signer") {
      if (!this.#due && this.#current !== undefined) return this.#current;
      const signed = await this.#nextSigned();
      if (signed !== undefined || this.#signed) {
        this.#signed = true;
        return signed ?? this.#current ?? (await this.#own(this.#source.hosts));
      }
    }
    return await this.#own(this.#source.hosts);
  }

  async #nextSigned(): Promise<Certificate | undefined> {
    try {
      return await this.#request?.next();
    } catch (error) {
      this.#log.warn({ err: error }, "kubelet API's serving certificate cannot be asked for: tried again");
      return undefined;
    }
  }

  async #own(hosts: readonly string[]): Promise<Certificate> {
    const now = this.#clock.now();
    if (this.#current !== undefined && renewalReason(this.#current.cert, { now }) === undefined) return this.#current;
    const authority = await issueAuthority("legation-kubelet-ca", { now, lifetimeMs: LIFETIME_MS });
    const { cert, key } = await issueServing(authority, hosts, { now, lifetimeMs: LIFETIME_MS });
    return { cert: cert + authority.cert, key };
  }
}
