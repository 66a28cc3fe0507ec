import { expect, test } from "vitest";
import { copiesOf } from "../../../scripts/release/dockerfile.ts";

const FIRST = ["FROM node AS build", "WORKDIR /build", "COPY src src"];

test("finds the files that the last stage of the Dockerfile copies", () => {
  const last = ["FROM node", "WORKDIR /app", "COPY --from=build /build/dist dist", "COPY package.json LICENSE ./"];
  expect(copiesOf([...FIRST, ...last, "COPY manifests manifests", "USER 65532"].join("\n"))).toEqual([
    { stage: "build", from: "/build/dist", to: "/app/dist" },
    { stage: undefined, from: "package.json", to: "/app/package.json" },
    { stage: undefined, from: "LICENSE", to: "/app/LICENSE" },
    { stage: undefined, from: "manifests", to: "/app/manifests" },
  ]);
});

test.each(["ADD manifests manifests", "COPY --chown=1 a b", 'COPY ["a", "b"]', "COPY a \\"])(
  "%s is not passed over",
  (line) => {
    expect(() => copiesOf([...FIRST, "FROM node", line].join("\n"))).toThrow("is not understood here");
  },
);
