import type { AnyObject, DelegatedType, FollowRule } from "../../api/delegated-type.ts";
import { objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { FOLLOWED_RULES } from "../../copies/followed-rules.ts";
import { followedKind } from "../../copies/objects.ts";
import { dependenciesBy, type FindDependencies } from "../../pods/dependencies.ts";
import { isBound } from "../../pods/pod-state.ts";
import type { GroupName } from "../../scheduling/groups.ts";
import { shortDigest } from "../copying/digests.ts";
import type { PodCopierOptions } from "../copying/pod-copier.ts";
import { DependencyController } from "../dependencies/controller.ts";
import { MemberDevices } from "./member-devices.ts";
import { FollowedStatuses } from "./statuses.ts";

export interface FollowerOptions extends PodCopierOptions {
  /** Counts and failures of the type may have changed. */
  readonly onChange: () => void;
}

/** Gives members the objects of one type that pods name. Of a type that confines pods, the status of a copy comes back. */
export class Follower {
  readonly copies: DependencyController<AnyObject>;
  readonly #type: Stored<DelegatedType>;
  readonly #of: FindDependencies;
  readonly #confines: boolean;
  readonly #devices: MemberDevices;
  readonly #statuses: FollowedStatuses | undefined;

  constructor(
    type: Stored<DelegatedType>,
    { names, optional, confines = false }: FollowRule,
    options: FollowerOptions,
  ) {
    this.#type = type;
    this.#confines = confines;
    const { kind } = type.spec;
    this.#of = dependenciesBy(
      names.map((rule) => [kind, optional === true ? { ...rule, optional } : rule] as const),
      { missing: (_, { name }) => ({ reason: "NotPlaced", message: `${type.metadata.name} "${name}" not found` }) },
    );
    const { proxies, events } = options;
    const devices = new MemberDevices({
      ...options,
      onChange: () => {
        const waiting = proxies.list().filter((proxy) => !isBound(proxy) && this.names(proxy));
        for (const { metadata } of waiting) events.emit("needs", objectKey(metadata));
      },
    });
    this.#devices = devices;
    const rules = FOLLOWED_RULES[type.metadata.name] ?? {};
    const { deviceClasses } = rules;
    const record = followedKind(type, shortDigest);
    this.copies = new DependencyController({
      ...options,
      family: {
        name: "followed-objects",
        title: type.metadata.name,
        kinds: [record],
        of: this.#of,
        confines,
        ...(rules.obstacle === undefined ? {} : { obstacle: rules.obstacle }),
        ...(deviceClasses === undefined
          ? {}
          : {
              preparationIn: (member, object) =>
                devices.preparationFor(member, `${kind} ${object.metadata.name}`, deviceClasses(object)),
            }),
      },
      onChange: (name) => {
        this.#statuses?.enqueue(name);
        options.onChange();
      },
      onState: options.onChange,
    });
    if (confines) this.#statuses = new FollowedStatuses(record, { ...options, copies: this.copies, rules });
  }

  async stop(): Promise<void> {
    this.#devices.stop();
    await this.#statuses?.stop();
    await this.copies.stop();
  }

  /** Returns the group of the pods that share an object with this one. */
  groupOf(pod: Pod): GroupName | undefined {
    const [object] = this.#confines ? this.#of(pod) : [];
    if (object === undefined) return undefined;
    const { kind, namespace, name } = object;
    return {
      id: `${namespace}/${this.#type.metadata.name}/${name}`,
      text: `the pods of ${kind} ${name}`,
      isGang: true,
    };
  }

  names(pod: Pod): boolean {
    return this.#of(pod).length > 0;
  }
}
