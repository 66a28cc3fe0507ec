import { addToBundle } from "../certificates/bundle.ts";
import type { Certificate } from "../certificates/issue.ts";
import { expiresAt } from "../certificates/validity.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { CertificateSource, Material } from "./certificate-source.ts";

/** The objects on the host that tell API servers where a server is, and whom to trust for it. */
export interface Callers {
  /** False if none of the objects is installed. */
  readonly installed: boolean;
  /** DNS names and addresses that API servers call, for the certificate. */
  readonly hosts: readonly string[];
}

/** Returns the bundle that an object must trust, from its present one: PEM, or empty. */
export type Trust = (trusted: string) => string;

export interface CertificateKeeperOptions {
  readonly source: CertificateSource;
  /**
   * Updates the `caBundle` of the callers where needed. Without `trust` another writer, such as cert-manager's injector,
   * owns it. Absent: callers are told nothing.
   */
  readonly publish?: (trust: Trust | undefined, signal: AbortSignal) => Promise<Callers>;
  /** The certificate's name in the log. Default: `serving certificate`. */
  readonly name?: string;
  /** Called with the expiry of each served certificate, epoch ms. */
  readonly onExpiry?: ((expiresAt: number | undefined) => void) | undefined;
  readonly clock: Pick<Clock, "wall" | "after" | "sleep">;
  readonly log: Logger;
}

// Polls fast until API servers trust the server.
const EAGER_MS = 1_000;
// API servers learn of a new authority by a watch, not all at once.
const TRUST_MS = 5_000;

/** Keeps a serving certificate valid, and trusted by its callers, while the server runs. */
export class CertificateKeeper {
  readonly #options: CertificateKeeperOptions;
  readonly #abort = new AbortController();
  #serving: Material | undefined;
  /** Names that callers use. */
  #hosts: readonly string[] = [];
  #trusted = false;
  #timer: Timer | undefined;

  constructor(options: CertificateKeeperOptions) {
    this.#options = options;
  }

  /** Rejects when no certificate is available. */
  async load(): Promise<Certificate> {
    this.#serving = await this.#next();
    const { certificate } = this.#serving;
    this.#options.onExpiry?.(expiresAt(certificate.cert));
    return certificate;
  }

  /** Reports whether API servers are told to trust this server. */
  get trusted(): boolean {
    return this.#trusted;
  }

  /** Runs until closed and calls `serve` with each new certificate. Resolves after callers were told, if there are any. */
  async follow(serve: (certificate: Certificate) => void): Promise<void> {
    if (this.#options.publish !== undefined) await this.#look(serve);
    this.#lookLater(serve);
  }

  close(): void {
    this.#abort.abort();
    this.#timer?.cancel();
  }

  #lookLater(serve: (certificate: Certificate) => void): void {
    const { clock, publish, source } = this.#options;
    if (this.#abort.signal.aborted) return;
    const isAwaited = publish !== undefined && !this.#trusted;
    const lookAgain = (): void => void this.#look(serve).then(() => this.#lookLater(serve));
    this.#timer = clock.after(isAwaited ? EAGER_MS : source.periodMs, lookAgain);
  }

  /** Never rejects: the served certificate stays valid for a third of its life. */
  async #look(serve: (certificate: Certificate) => void): Promise<void> {
    const { name = "serving certificate", publish, log, onExpiry } = this.#options;
    try {
      const { next, trusted } =
        publish === undefined ? { next: await this.#next(), trusted: false } : await this.#published(publish);
      if (this.#abort.signal.aborted) return;
      if (next.certificate.cert !== this.#serving?.certificate.cert) {
        serve(next.certificate);
        onExpiry?.(expiresAt(next.certificate.cert));
        log.info(`${name} renewed`);
      }
      this.#serving = next;
      this.#trusted = trusted;
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      const problem = publish === undefined ? "not renewed: the one before is kept" : "not checked";
      log.warn({ err: error }, `${name} ${problem}`);
    }
  }

  /** Returns the certificate to serve, once its callers trust it. */
  async #published(
    publish: NonNullable<CertificateKeeperOptions["publish"]>,
  ): Promise<{ readonly next: Material; readonly trusted: boolean }> {
    const { signal } = this.#abort;
    let next = await this.#next();
    const { installed, hosts } = await publish(this.#trustOf(next), signal);
    if (hosts.some((host) => !this.#hosts.includes(host))) {
      this.#hosts = hosts;
      next = await this.#next();
      await publish(this.#trustOf(next), signal);
    }
    // A certificate served before it is trusted fails every call.
    const isOfOther =
      next.certificate.cert !== this.#serving?.certificate.cert && next.caBundle !== this.#serving?.caBundle;
    if (this.#trusted && isOfOther) await this.#options.clock.sleep(TRUST_MS, signal).catch(() => {});
    return { next, trusted: installed };
  }

  #next(): Promise<Material> {
    return this.#options.source.next(this.#hosts, this.#abort.signal);
  }

  /** Keeps authorities of other replicas, which may serve under files or a Secret that this one has not read. */
  #trustOf({ caBundle }: Material): Trust | undefined {
    if (caBundle === undefined) return undefined;
    return (trusted) => addToBundle(trusted, caBundle, this.#options.clock.wall());
  }
}
