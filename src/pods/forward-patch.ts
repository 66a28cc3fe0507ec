/** One request that makes a delegate follow its proxy: a strategic merge patch, with the uid as a precondition. */
export interface ForwardPatch {
  /** Absent: of the pod itself. */
  readonly subresource?: "resize" | "ephemeralcontainers" | "status";
  readonly body: {
    readonly metadata: {
      readonly uid: string;
      readonly labels?: Readonly<Record<string, string | null>>;
      readonly annotations?: Readonly<Record<string, string | null>>;
    };
    readonly spec?: object;
    readonly status?: object;
  };
  /** Sent in its place when the member refuses it as a whole: what it takes of these must not wait for what it does not take. */
  readonly apart?: readonly ForwardPatch[];
}
