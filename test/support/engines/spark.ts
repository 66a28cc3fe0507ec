import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { GivenFile } from "./given-files.ts";
import { type EngineFolder, sparkHome } from "./python.ts";
import { pythonFiles } from "./python-in-pods.ts";

const JVMS = "/usr/lib/jvm";

/** Home of a Java that Spark 4.0 runs on, 17 or 21; throws with what to install where there is none. */
export function findJava(): string {
  const installed = existsSync(JVMS) ? readdirSync(JVMS).map((name) => join(JVMS, name, "bin", "java")) : [];
  const inPath = (process.env.PATH ?? "").split(":").map((folder) => join(folder, "java"));
  for (const java of [...inPath, ...installed].filter((path) => existsSync(path))) {
    const { stderr } = spawnSync(java, ["-version"], { encoding: "utf8" });
    if (/version "(17|21)\b/.test(stderr)) return dirname(dirname(realpathSync(java)));
  }
  throw new Error("Spark needs Java 17 or 21 (on Debian: apt-get install default-jre-headless).");
}

/** Fewer threads and less compiling: a test is over before more would pay. */
export const JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/** Path of Spark in containers. */
const HOME = "/opt/spark";

// An image of Spark's has one entrypoint, which its pods tell by an argument what to be. Here each is a command.
const DRIVER = `exec ${HOME}/bin/spark-submit --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" --deploy-mode client "$@"`;
const EXECUTOR = `exec "$JAVA_HOME/bin/java" $(env | sed -n 's/^SPARK_JAVA_OPT_[0-9]*=//p') \\
  "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "${HOME}/conf:${HOME}/jars/*" \\
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \\
  --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \\
  --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \\
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"`;

/** Writes the commands of drivers and executors into `directory`; resolves to all that an image of Spark's would have. */
export function sparkFiles(engine: EngineFolder, java: string, directory: string): GivenFile[] {
  const commands = Object.entries({ driver: DRIVER, executor: EXECUTOR }).map(([name, text]): GivenFile => {
    const path = join(directory, name);
    const variables = `export JAVA_HOME=${java} SPARK_HOME=${HOME} PYSPARK_PYTHON=${engine.python}`;
    writeFileSync(path, `#!/bin/sh\n${variables}\n${text}\n`);
    chmodSync(path, 0o755);
    return { from: path, to: `/bin/${name}` };
  });
  // Debian keeps Java's settings elsewhere, with links to them.
  const settings = dirname(realpathSync(join(java, "conf", "net.properties")));
  const folders = [...(java.startsWith("/usr/") ? [] : [java]), ...(settings.startsWith(java) ? [] : [settings])];
  return [
    ...pythonFiles(engine),
    ...folders.map((path) => ({ from: path, to: path })),
    { from: sparkHome(engine), to: HOME },
    ...commands,
  ];
}
