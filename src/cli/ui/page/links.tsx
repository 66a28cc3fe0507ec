import type { JSX } from "preact";
import { whyLost } from "./freshness.ts";
import { useLive } from "./live.ts";
import { linkTo } from "./route.ts";

/** A member's name as a link, marked while the member is lost. */
export function MemberLink({ name }: { name: string | undefined }): JSX.Element {
  const { members } = useLive();
  if (name === undefined) return <>–</>;
  const lost = whyLost(name, members);
  return (
    <span>
      <a href={linkTo(["members", name])} title={name}>
        {name}
      </a>
      {lost !== undefined && (
        <span class="chip lost" title={lost}>
          lost
        </span>
      )}
    </span>
  );
}

export function NamespaceLink({ name }: { name: string | undefined }): JSX.Element {
  return name ? (
    <a href={linkTo(["namespaces", name])} title={name}>
      {name}
    </a>
  ) : (
    <>–</>
  );
}

/** A node in a member. */
export function NodeLink({ member, name }: { member: string | undefined; name: string | undefined }): JSX.Element {
  return member === undefined || name === undefined ? (
    <>–</>
  ) : (
    <a href={linkTo(["nodes", member, name])} title={name}>
      {name}
    </a>
  );
}

/** A workload, named as `Deployment/web`. */
export function WorkloadLink({ namespace, of }: { namespace: string; of: string | undefined }): JSX.Element {
  const [kind = "", name = ""] = (of ?? "").split("/");
  return of === undefined ? (
    <>–</>
  ) : (
    <a href={linkTo(["workloads", kind, namespace, name])} title={of}>
      {of}
    </a>
  );
}

export function PodLink({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  return (
    <a href={linkTo(["pods", namespace, name])} title={`${namespace}/${name}`}>
      {name}
    </a>
  );
}
