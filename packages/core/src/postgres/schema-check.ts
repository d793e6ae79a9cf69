import type { KnownRecord } from "../inbox/contract/store.ts";
import type { LoggerOption } from "../notices/logger.ts";
import type { Loss } from "../notices/notice.ts";
import { type SetupWarning, SetupWarnings } from "../notices/setup-warnings.ts";
import type { Row, Statement } from "./client.ts";
import type { Connections } from "./connections.ts";
import { isForbidden, isMissing, isReadOnly } from "./failure.ts";
import {
  countMissing,
  insertMetaRow,
  inspectSchema,
  isWhole,
  migration,
  noTables,
  SCHEMA_VERSION,
  wrongVersion,
} from "./schema.ts";
import type { Sessions } from "./sessions.ts";
import { checkSuitability, suitability } from "./suitability.ts";

/** A given client may have to wake its server for the first statement, or create the tables. */
export const OPEN_MS = 30_000;

/** Identifies the data of one inbox. */
interface Data {
  readonly datasetId: string;
  /** The number of each table. */
  readonly tables: string;
}

/** The tables of a store: makes and checks them at the start, and notices later whether they or their data were lost. */
export class SchemaCheck {
  readonly #schema: string;
  readonly #migrates: boolean;
  readonly #warnings: SetupWarnings;
  #data: Data = { datasetId: "", tables: "" };
  /** The row that names the data was missing, and was made again. The next check reports it. */
  #wasEmptied = false;
  #isWarned = false;

  constructor(schema: string, migrates: boolean, logger: LoggerOption | undefined) {
    this.#schema = schema;
    this.#migrates = migrates;
    this.#warnings = new SetupWarnings(logger);
  }

  get warnings(): readonly SetupWarning[] {
    return this.#warnings.all;
  }

  /** The id of the data set; empty until it was checked. */
  get datasetId(): string {
    return this.#data.datasetId;
  }

  /**
   * Checks that the tables exist and can be used, and makes the missing parts.
   *
   * @throws PayhooksError `ERR_POSTGRES_UNSUITABLE`, or the error of the server
   */
  async check({ path }: Connections): Promise<void> {
    const schema = this.#schema;
    const statement = { ...inspectSchema(schema), givenClientLimitMs: OPEN_MS };
    let found: Row | undefined;
    try {
      [found] = await path.run(statement);
      if (found !== undefined && Number(found.version) !== SCHEMA_VERSION) {
        throw wrongVersion(schema, Number(found.version));
      }
      // The transaction that makes the tables makes this row too, so it was deleted since.
      this.#wasEmptied ||= found === undefined;
      if (found === undefined && !this.#migrates) await path.run(insertMetaRow(schema));
      if (!isUsable(found)) [found] = await this.#make(path, statement);
    } catch (error) {
      if (!isMissing(error)) throw error;
      [found] = await this.#make(path, statement, error);
    }
    if (!isUsable(found)) throw noTables(schema, "or they are incomplete");
    const [suited] = await path.run({ ...suitability(schema), givenClientLimitMs: OPEN_MS });
    checkSuitability(schema, suited);
    this.#data = dataOf(found);
    this.#warn(found);
  }

  /** Makes the tables, or their missing parts, and checks again. */
  async #make(path: Sessions, statement: Statement, cause?: unknown): Promise<readonly Row[]> {
    if (!this.#migrates) {
      if (cause !== undefined) throw noTables(this.#schema, "and migrate is false", cause);
      return path.run(statement);
    }
    try {
      await path.run({ name: "", text: migration(this.#schema), givenClientLimitMs: OPEN_MS });
    } catch (error) {
      if (isForbidden(error)) {
        const why = "and this role may not create them: it lacks CREATE on the database or on the schema";
        throw noTables(this.#schema, why, error);
      }
      if (isReadOnly(error)) throw noTables(this.#schema, "and this server accepts no writes", error);
      throw error;
    }
    return path.run(statement);
  }

  #warn(found: Row): void {
    if (this.#isWarned) return;
    this.#isWarned = true;
    const off = ["synchronous_commit", "fsync", "full_page_writes"].filter((name) => found[name] === "off");
    for (const name of off) {
      this.#warnings.add(
        `PostgreSQL runs with ${name} = off: acknowledged events are lost if its machine crashes.`,
        "Set it to on.",
      );
    }
  }

  /** See `findLoss` of a store. */
  async findLoss(connections: Connections, known: readonly KnownRecord[]): Promise<Loss | null> {
    const before = this.#data;
    try {
      const [found] = await connections.upkeep.run(inspectSchema(this.#schema));
      if (isUsable(found)) this.#data = dataOf(found);
      else await this.#repair(connections);
    } catch (error) {
      if (!isMissing(error)) throw error;
      await this.#repair(connections);
    }
    const isReplaced =
      this.#wasEmptied || this.#data.datasetId !== before.datasetId || this.#data.tables !== before.tables;
    this.#wasEmptied = false;
    if (isReplaced) return "replaced";
    return (await this.#isMissing(connections, known)) ? "missing" : null;
  }

  /** Makes what is missing of the tables. If it cannot be made, every write says so. */
  async #repair(connections: Connections): Promise<void> {
    this.#data = { datasetId: "", tables: "" };
    await this.check(connections).catch(() => {});
  }

  async #isMissing({ upkeep }: Connections, known: readonly KnownRecord[]): Promise<boolean> {
    if (known.length === 0) return false;
    const numberOf = (flag: boolean): number => (flag ? 1 : 0);
    const [row] = await upkeep.run(countMissing(this.#schema), [
      known.map(({ key }) => key),
      known.map(({ version }) => version),
      known.map(({ index }) => numberOf(index.events.length > 0)),
      known.map(({ index }) => numberOf(index.events.some(({ state }) => state !== "finished"))),
    ]);
    return Number(row?.n) > 0;
  }
}

function dataOf({ dataset_id: datasetId, tables }: Row): Data {
  return { datasetId: String(datasetId), tables: String(tables) };
}

/** True if all tables exist, and the row that names them. */
function isUsable(found: Row | undefined): found is Row {
  return found !== undefined && isWhole(String(found.tables));
}
