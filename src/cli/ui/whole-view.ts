import { defined } from "../../api/defined.ts";
import type { DelegatedType } from "../../api/delegated-type.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { delegatedTypes, resourceOfType } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { kindName } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector, type ReflectorOptions } from "../../runtime/reflector.ts";
import type { ReflectorFailure } from "../../runtime/reflector-failure.ts";
import { SILENT_LOG } from "../../telemetry/silent-log.ts";
import { WHOLE_SELECTOR } from "../../whole/jobs/kind.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { DELEGATED_OBJECTS, type Hidden, objectsOf, ofViewers } from "../shared/hidden.ts";
import type { WholeRow, WholeRows } from "./model.ts";
import { wholeRow } from "./whole-rows.ts";

/** Settings of a view of the host. */
export interface ViewOptions {
  readonly host: ClusterClient;
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  /** The namespace was chosen since the user may not list the pods of all. */
  readonly isConfined?: boolean;
  readonly clock: Clock;
}

/** A whole object as the page keeps it: its row, and nothing of its content, which may be secret or large. */
interface ShownObject extends KubeObject {
  readonly row?: WholeRow;
}

type Followed = ReflectorOptions<KubeObject>["resource"];

/** The host's whole objects of all delegated types, and those of built-in types, as far as the user may list them. */
export class WholeView {
  readonly #options: ViewOptions;
  readonly #onChange: () => void;
  readonly #types: Reflector<DelegatedType>;
  /** Reflectors by the name of the DelegatedType, or the plural of the built-in type. */
  readonly #objects = new Map<string, Reflector<ShownObject>>();

  constructor(options: ViewOptions, onChange: () => void) {
    this.#options = options;
    this.#onChange = onChange;
    const { host: client, clock } = options;
    this.#types = new Reflector({
      client,
      clock,
      log: SILENT_LOG,
      resource: delegatedTypes,
      onState: onChange,
      onEvent: ({ type: event, object: type }) => {
        const { name } = type.metadata;
        if (event === "deleted") {
          void this.#objects.get(name)?.stop();
          this.#objects.delete(name);
          onChange();
        } else if (!this.#objects.has(name)) {
          this.#follow(resourceOfType(type), { type: name, kind: type.spec.kind }).start();
        }
      },
    });
    for (const builtIn of WHOLE_TYPES) {
      const { plural: type, kind } = builtIn.resource;
      this.#follow(builtIn.resource, { type, kind, builtIn });
    }
  }

  start(): void {
    for (const reflector of [this.#types, ...this.#objects.values()]) reflector.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#types, ...this.#objects.values()].map((reflector) => reflector.stop()));
  }

  /** Returns all rows, in the order of their names. */
  get current(): WholeRows {
    const rows = [...this.#objects.values()].flatMap(({ store }) => store.list().flatMap(({ row }) => row ?? []));
    return {
      rows: rows.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)),
      notRead: this.#failing.flatMap(({ name, code, reason }) => (code === "Forbidden" ? [] : [`${name}: ${reason}`])),
    };
  }

  /** Returns what the user may not list. */
  get hidden(): readonly Hidden[] {
    return this.#failing.flatMap(({ name, code }) => {
      if (code !== "Forbidden") return [];
      if (name === delegatedTypes.plural) return [DELEGATED_OBJECTS];
      const builtIn = WHOLE_TYPES.find(({ resource }) => resource.plural === name);
      return [builtIn === undefined ? objectsOf(name) : ofViewers(kindName(builtIn.resource))];
    });
  }

  /** The resources that cannot be read. */
  get #failing(): (ReflectorFailure & { readonly name: string })[] {
    const failures = [...this.#objects].map(([name, { failing }]) => ({ name, failing }));
    return [{ name: delegatedTypes.plural, failing: this.#types.failing }, ...failures].flatMap(({ name, failing }) =>
      failing === undefined ? [] : [{ ...failing, name }],
    );
  }

  #follow(resource: Followed, of: Parameters<typeof wholeRow>[1]): Reflector<ShownObject> {
    const { host: client, namespace, clock } = this.#options;
    const isNamespaced = !("namespaced" in resource) || resource.namespaced;
    const reflector = new Reflector<ShownObject>({
      client,
      clock,
      log: SILENT_LOG,
      resource,
      labelSelector: WHOLE_SELECTOR,
      ...(namespace === undefined || !isNamespaced ? {} : { namespace }),
      transform: (object) => {
        const { metadata } = object;
        const { uid, name: own, resourceVersion } = metadata;
        const kept = { uid, name: own, resourceVersion, ...defined({ namespace: metadata.namespace }) };
        return { metadata: kept, row: wholeRow(object, of) };
      },
      // A type that cannot be read is told as well.
      onState: this.#onChange,
      onEvent: this.#onChange,
    });
    this.#objects.set(of.type, reflector);
    return reflector;
  }
}

function nameOf({ namespace = "", type, name }: WholeRow): string {
  return `${namespace}/${type}/${name}`;
}
