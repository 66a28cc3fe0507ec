import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Certificate, issueSelfSigned } from "../certificates/issue.ts";
import { checkPair } from "../certificates/pair.ts";
import { type RenewalReason, renewalReason } from "../certificates/validity.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { SigningRequest } from "./signing-request.ts";

export type CertificateSource =
  /** Self-signed, for API servers that do not verify kubelets. */
  | { readonly kind: "own"; readonly hosts: readonly string[] }
  /** Files that another program, such as cert-manager, keeps current. */
  | { readonly kind: "files"; readonly certFile: string; readonly keyFile: string }
  /** A signer of the host. A self-signed certificate serves until it has signed. */
  | { readonly kind: "signer"; readonly signer: string; readonly hosts: readonly string[] };

const DAY_MS = 24 * 60 * 60_000;
const LIFETIME_MS = 365 * DAY_MS;
// Mounted Secrets update within a minute, and certificates are renewed long before they expire.
const FILES_PERIOD_MS = 10_000;
// Costs nothing while the certificate is good, and a clock may be set at any time.
const OWN_PERIOD_MS = 60_000;
// Until then the clock of a signer, or this machine's, may be right again.
const EARLY_PERIOD_MS = 10 * 60_000;
// Poll interval while a request is pending. Logs do not work until it is approved.
const ASKED_PERIOD_MS = 2_000;

export interface ServingCertificateOptions {
  readonly source: CertificateSource;
  readonly host: ClusterClient;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The serving certificate of the virtual nodes. Renews it while they serve. */
export class ServingCertificate {
  readonly #source: CertificateSource;
  readonly #request: SigningRequest | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  #current: Certificate | undefined;
  #signed: Certificate | undefined;
  /** When a signed certificate that is not valid yet is asked for again; ms of the monotonic clock. */
  #askEarlyAt = 0;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: ServingCertificateOptions) {
    const { source, host, clock, log } = options;
    this.#source = source;
    this.#request = source.kind === "signer" ? new SigningRequest({ host, clock, log, ...source }) : undefined;
    this.#clock = clock;
    this.#log = log;
  }

  /** Rejects when no certificate is available. */
  async load(): Promise<Certificate> {
    this.#current = await this.#next();
    return this.#current;
  }

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
    return this.#request === undefined || this.#isKept(this.#signed) ? OWN_PERIOD_MS : ASKED_PERIOD_MS;
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
      // Sequential, so that the error always names the same file when both are missing.
      const cert = await readFile(certFile, "utf8");
      const key = await readFile(keyFile, "utf8");
      // Throws while only one of the two files has been replaced.
      checkPair({ cert, key });
      return { cert, key };
    }
    if (this.#request !== undefined) await this.#sign(this.#request);
    return this.#signed ?? (await this.#own(this.#source.hosts));
  }

  async #sign(request: SigningRequest): Promise<void> {
    const before = this.#signed;
    const isEarly = this.#reason(before) === "early";
    if (isEarly ? this.#clock.now() < this.#askEarlyAt : this.#reason(before) === undefined) return;
    const next = await this.#ask(request);
    if (next === undefined) return;
    this.#askEarlyAt = this.#clock.now() + EARLY_PERIOD_MS;
    // While this machine's clock is behind, each one starts later than the one before.
    if (before === undefined || !isEarly || startsBefore(next, before)) this.#signed = next;
  }

  async #ask(request: SigningRequest): Promise<Certificate | undefined> {
    try {
      return await request.next();
    } catch (error) {
      this.#log.warn({ err: error }, "kubelet API's serving certificate cannot be asked for: tried again");
      return undefined;
    }
  }

  async #own(hosts: readonly string[]): Promise<Certificate> {
    if (this.#current !== undefined && this.#reason(this.#current) === undefined) return this.#current;
    return issueSelfSigned(hosts, { now: this.#clock.wall(), lifetimeMs: LIFETIME_MS });
  }

  #isKept(certificate: Certificate | undefined): boolean {
    const reason = this.#reason(certificate);
    return reason === undefined || reason === "early";
  }

  #reason(certificate: Certificate | undefined): RenewalReason | undefined {
    return certificate === undefined ? "unreadable" : renewalReason(certificate.cert, { now: this.#clock.wall() });
  }
}

function startsBefore(one: Certificate, other: Certificate): boolean {
  return new X509Certificate(one.cert).validFromDate < new X509Certificate(other.cert).validFromDate;
}
