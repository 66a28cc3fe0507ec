import { RELAY_IN_MEMBERS_ANNOTATION } from "../api/keys.ts";
import type { Stored } from "../api/kubernetes.ts";
import { memoized } from "../api/memoized.ts";
import { relaysInMembers } from "../api/relay.ts";
import type { ServiceObject } from "./services.ts";
import type { Source } from "./source.ts";

/** EndpointSlices of relayed Services as members are given them: with their own relays. Each is made once: the copier compares by identity. */
export class RelayedSlices {
  readonly #sourcesOf = memoized(sourcesOf);

  of(slice: Stored<ServiceObject>, member: string): Source<ServiceObject> {
    return this.#sourcesOf(slice).get(member) ?? { state: "missing" };
  }
}

function sourcesOf(slice: Stored<ServiceObject>): Map<string, Source<ServiceObject>> {
  const { [RELAY_IN_MEMBERS_ANNOTATION]: _, ...annotations } = slice.metadata.annotations ?? {};
  const metadata = { ...slice.metadata, annotations };
  return new Map(
    Object.entries(relaysInMembers(slice)).map(([member, endpoints]) => [
      member,
      { state: "present", object: { ...slice, metadata, endpoints } },
    ]),
  );
}
