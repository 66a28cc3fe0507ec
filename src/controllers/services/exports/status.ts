import { defined } from "../../../api/defined.ts";
import { COPY_LABEL, COPY_LABEL_VALUE, HOST_LABEL } from "../../../api/keys.ts";
import { type KubeObject, objectKey, type ServiceExport, type Stored } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { MemberWatches } from "../../../clusters/member-watches.ts";
import { isCopy } from "../../../copies/copy-metadata.ts";
import { conditionManager } from "../../../copies/export-status.ts";
import { applyStatus } from "../../../kube/apply-status.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError, isRefusal } from "../../../kube/errors.ts";
import { resourceOf } from "../../../kube/optional-resource.ts";
import { serviceExports } from "../../../kube/resources.ts";
import {
  type ActionContext,
  Controller,
  type ControllerOptions,
  type Expectation,
} from "../../../runtime/controller.ts";
import { Reflector, type Rest } from "../../../runtime/reflector.ts";
import { decideReport, type ExportSource, type LastReport, type ObservedExport, type ReportAction } from "./decide.ts";

export interface ExportStatusOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly hostId: string;
  readonly exportOf: (namespace: string, name: string) => ExportSource;
  /** Reports whether the member has pods of the namespace, or the Service whole. Reports of others do not count. */
  readonly counts: (member: string, namespace: string, name: string) => boolean;
}

type ExportKey = `${string}/${string}`;

/** Writes members' export status to the host. A field manager per condition: a conflict holds back that condition alone. */
export class ExportStatus {
  readonly #options: ExportStatusOptions;
  readonly #loop: Controller<ExportKey, ObservedExport, ReportAction>;
  readonly #watches: MemberWatches<Reflector<ServiceExport>>;
  readonly #since = new Map<ExportKey, number>();
  readonly #last = new Map<ExportKey, Map<string, LastReport>>();

  constructor(options: ExportStatusOptions) {
    this.#options = options;
    this.#watches = new MemberWatches((member, rest) => this.#reflector(member, rest));
    this.#loop = new Controller<ExportKey, ObservedExport, ReportAction>(
      {
        name: "export-status",
        observe: (key) => this.#observe(key),
        decide: decideReport,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
  }

  onExport(namespace: string, name: string): void {
    this.#loop.enqueue(`${namespace}/${name}`);
  }

  listenTo(member: Member): void {
    this.#watches.add(member);
    this.#watches.of(member)?.need();
  }

  /** Members left: their reports do not count any more. */
  onMembers(members: readonly Member[]): void {
    for (const { store } of this.#watches.keep(members)) {
      for (const object of store.list()) this.#onReport(object);
    }
  }

  async stop(): Promise<void> {
    await this.#watches.stop();
    await this.#loop.stop();
  }

  #reflector(member: Member, rest: Rest): Reflector<ServiceExport> {
    const { hostId, clock, log } = this.#options;
    return new Reflector<ServiceExport>({
      client: member.client,
      resource: serviceExports,
      labelSelector: `${HOST_LABEL}=${hostId},${COPY_LABEL}=${COPY_LABEL_VALUE}`,
      budget: member.memory,
      rest,
      clock,
      log: log.child({ member: member.name }),
      onEvent: ({ object }) => this.#onReport(object),
    });
  }

  #onReport({ metadata: { namespace = "", name } }: Stored<KubeObject>): void {
    this.onExport(namespace, name);
  }

  #observe(key: ExportKey): ObservedExport | undefined {
    const { exportOf, counts, hostId, clock } = this.#options;
    const [namespace = "", name = ""] = key.split("/");
    const source = exportOf(namespace, name);
    if (source.state !== "present") {
      if (source.state === "missing") {
        this.#since.delete(key);
        this.#last.delete(key);
      }
      return undefined;
    }
    const since = this.#since.get(key) ?? clock.now();
    this.#since.set(key, since);
    const reports = [...this.#watches].flatMap(([member, { store }]) => {
      const found = store.get(objectKey({ namespace, name }));
      if (found === undefined || !isCopy(found, hostId, serviceExports) || !counts(member.name, namespace, name))
        return [];
      return [{ member: member.name, conditions: found.status?.conditions ?? [] }];
    });
    return { exported: source.object, reports, since, last: [...(this.#last.get(key)?.values() ?? [])] };
  }

  async #execute(
    { exported, type, condition }: ReportAction,
    { key, signal, log }: ActionContext<ExportKey>,
  ): Promise<Expectation<ObservedExport> | undefined> {
    const { host, clock } = this.#options;
    const { namespace = "", name, uid } = exported.metadata;
    const status = { conditions: condition === undefined ? [] : [condition] };
    const applied = { status, fieldManager: conditionManager(type), force: false, signal };
    const resource = resourceOf(serviceExports, exported);
    let { resourceVersion } = exported.metadata;
    let expectation: Expectation<ObservedExport> | undefined;
    try {
      const written = await applyStatus(host, resource, { namespace, name, uid }, applied);
      const before = resourceVersion;
      resourceVersion = written.metadata.resourceVersion;
      if (before !== resourceVersion) expectation = ({ exported: now }) => now.metadata.resourceVersion !== before;
    } catch (error) {
      // The watch will show that it is gone, or served in another version.
      if (isKubeError(error, "NotFound")) return undefined;
      if (!isRefusal(error) && !isKubeError(error, "Conflict")) throw error;
      log.info({ condition: type, reason: error.detail }, "a condition of a ServiceExport is left as it is");
    }
    const last = this.#last.get(key) ?? new Map<string, LastReport>();
    const report = { type, ...defined({ condition }), at: clock.now(), resourceVersion };
    this.#last.set(key, last.set(type, report));
    return expectation;
  }
}
