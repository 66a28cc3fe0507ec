import fc from "fast-check";
import { expect, test } from "vitest";
import { memberIdentity } from "../../../src/access/identity.ts";

test("prefixes the user and the groups, and keeps uid and extra", () => {
  const user = {
    name: "alice",
    uid: "u1",
    groups: ["developers", "system:authenticated"],
    extra: { "acme.com/team": ["a"] },
  };
  expect(memberIdentity(user, "legation:")).toEqual({
    user: "legation:alice",
    uid: "u1",
    groups: ["legation:developers"],
    extra: { "acme.com/team": ["a"] },
  });
});

test("gives Kubernetes' own users of the host a name that no user of the member has", () => {
  const user = { name: "system:serviceaccount:team:ci", groups: ["system:serviceaccounts", "system:masters"] };
  expect(memberIdentity(user, "legation:")).toMatchObject({
    user: "legation:system:serviceaccount:team:ci",
    groups: [],
  });
});

test.each(["system:serviceaccount:kube-system:default", "system:admin", "system:node:n1"])(
  "refuses %s without a prefix, which would be the member's own",
  (name) => {
    expect(memberIdentity({ name, groups: [] }, "")).toHaveProperty(
      "problem",
      expect.stringContaining("--access-prefix"),
    );
  },
);

test.each([
  [{ name: "system:anonymous", groups: ["system:unauthenticated"] }],
  [{ name: "guest", groups: ["system:unauthenticated"] }],
])("refuses anonymous users, whom a member would count as authenticated", (user) => {
  expect(memberIdentity(user, "legation:")).toHaveProperty("problem", expect.stringContaining("anonymous"));
});

test("leaves out what the host's API server says about its own tokens and nodes", () => {
  const extra = {
    "authentication.kubernetes.io/node-name": ["n1"],
    "authentication.kubernetes.io/credential-id": ["JTI=1"],
    "scopes.authorization.openshift.io": ["user:info"],
    "kubernetes.io.evil.com/x": ["1"],
  };
  expect(memberIdentity({ name: "alice", groups: [], extra }, "legation:")).toMatchObject({
    extra: { "scopes.authorization.openshift.io": ["user:info"], "kubernetes.io.evil.com/x": ["1"] },
  });
});

test("never yields a user or group of Kubernetes' own, whatever the host's user and the prefix are", () => {
  const name = fc.oneof(fc.string(), fc.constantFrom("system:masters", "system:", "stem:masters", ":masters", ""));
  const prefix = fc.oneof(
    fc.constantFrom("", "legation:", "sy", "system", "system:", "s"),
    fc.string({ maxLength: 8 }),
  );
  fc.assert(
    fc.property(name, fc.array(name), prefix, (user, groups, each) => {
      const identity = memberIdentity({ name: user, groups }, each);
      if ("problem" in identity) return;
      for (const own of [identity.user, ...identity.groups]) expect(own.startsWith("system:")).toBe(false);
      expect(identity.user).toBe(`${each}${user}`);
    }),
  );
});
