import type { KnownRecord } from "../inbox/contract/store.ts";
import type { LoggerOption } from "../notices/logger.ts";
import type { Loss } from "../notices/notice.ts";
import { type SetupWarning, SetupWarnings } from "../notices/setup-warnings.ts";
import type { Row, Statement } from "./client.ts";
import type { Connections } from "./connections.ts";
import { isForbidden, isReadOnly, isTableMissing } from "./failure.ts";
import {
  countMissingRecords,
  hasAllTables,
  insertMetaRow,
  inspectSchema,
  migrationSql,
  SCHEMA_VERSION,
  tablesMissingError,
  wrongVersionError,
} from "./schema.ts";
import type { Sessions } from "./sessions.ts";
import { checkSuitability, inspectSuitability } from "./suitability.ts";

/** A given client may have to wake its server for the first statement, or create the tables. */
export const OPEN_TIMEOUT_MS = 30_000;

/** Identifies the data of one inbox. */
interface DatasetIdentity {
  readonly datasetId: string;
  /** The number of each table. */
  readonly tables: string;
}

/** The tables of a store: makes and checks them at the start, and notices later whether they or their data were lost. */
export class SchemaCheck {
  readonly #schema: string;
  readonly #shouldMigrate: boolean;
  readonly #warnings: SetupWarnings;
  #identity: DatasetIdentity = { datasetId: "", tables: "" };
  /** The row that names the data was missing, and was made again. The next check reports it. */
  #wasEmptied = false;
  #hasWarned = false;

  constructor(schema: string, shouldMigrate: boolean, logger: LoggerOption | undefined) {
    this.#schema = schema;
    this.#shouldMigrate = shouldMigrate;
    this.#warnings = new SetupWarnings(logger);
  }

  get warnings(): readonly SetupWarning[] {
    return this.#warnings.all;
  }

  /** The id of the data set; empty until it was checked. */
  get datasetId(): string {
    return this.#identity.datasetId;
  }

  /**
   * Checks that the tables exist and can be used, and makes the missing parts.
   *
   * @throws PayhooksError `ERR_POSTGRES_UNSUITABLE`, or the error of the server
   */
  async check({ foreground }: Connections): Promise<void> {
    const schema = this.#schema;
    const statement = { ...inspectSchema(schema), givenClientLimitMs: OPEN_TIMEOUT_MS };
    let row: Row | undefined;
    try {
      [row] = await foreground.run(statement);
      if (row !== undefined && Number(row.version) !== SCHEMA_VERSION) {
        throw wrongVersionError(schema, Number(row.version));
      }
      // The transaction that makes the tables makes this row too, so it was deleted since.
      this.#wasEmptied ||= row === undefined;
      if (row === undefined && !this.#shouldMigrate) await foreground.run(insertMetaRow(schema));
      if (!isUsable(row)) [row] = await this.#makeTables(foreground, statement);
    } catch (error) {
      if (!isTableMissing(error)) throw error;
      [row] = await this.#makeTables(foreground, statement, error);
    }
    if (!isUsable(row)) throw tablesMissingError(schema, "or they are incomplete");
    const [privilegesRow] = await foreground.run({
      ...inspectSuitability(schema),
      givenClientLimitMs: OPEN_TIMEOUT_MS,
    });
    checkSuitability(schema, privilegesRow);
    this.#identity = identityOf(row);
    this.#warn(row);
  }

  /** Makes the tables, or their missing parts, and checks again. */
  async #makeTables(foreground: Sessions, statement: Statement, cause?: unknown): Promise<readonly Row[]> {
    if (!this.#shouldMigrate) {
      if (cause !== undefined) throw tablesMissingError(this.#schema, "and migrate is false", cause);
      return foreground.run(statement);
    }
    try {
      await foreground.run({
        name: "",
        text: migrationSql(this.#schema),
        givenClientLimitMs: OPEN_TIMEOUT_MS,
      });
    } catch (error) {
      if (isForbidden(error)) {
        const reason = "and this role may not create them: it lacks CREATE on the database or on the schema";
        throw tablesMissingError(this.#schema, reason, error);
      }
      if (isReadOnly(error))
        throw tablesMissingError(this.#schema, "and this server accepts no writes", error);
      throw error;
    }
    return foreground.run(statement);
  }

  #warn(row: Row): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const offSettings = ["synchronous_commit", "fsync", "full_page_writes"].filter(
      (name) => row[name] === "off",
    );
    for (const name of offSettings) {
      this.#warnings.add(
        `PostgreSQL runs with ${name} = off: acknowledged events are lost if its machine crashes.`,
        "Set it to on.",
      );
    }
  }

  /** See `findLoss` of a store. */
  async findLoss(connections: Connections, knownRecords: readonly KnownRecord[]): Promise<Loss | null> {
    const identityBefore = this.#identity;
    try {
      const [row] = await connections.background.run(inspectSchema(this.#schema));
      if (isUsable(row)) this.#identity = identityOf(row);
      else await this.#repair(connections);
    } catch (error) {
      if (!isTableMissing(error)) throw error;
      await this.#repair(connections);
    }
    const isReplaced =
      this.#wasEmptied ||
      this.#identity.datasetId !== identityBefore.datasetId ||
      this.#identity.tables !== identityBefore.tables;
    this.#wasEmptied = false;
    if (isReplaced) return "replaced";
    return (await this.#isAnyRecordMissing(connections, knownRecords)) ? "missing" : null;
  }

  /** Makes what is missing of the tables. If it cannot be made, every write says so. */
  async #repair(connections: Connections): Promise<void> {
    this.#identity = { datasetId: "", tables: "" };
    await this.check(connections).catch(() => {});
  }

  async #isAnyRecordMissing(
    { background }: Connections,
    knownRecords: readonly KnownRecord[],
  ): Promise<boolean> {
    if (knownRecords.length === 0) return false;
    const toFlag = (flag: boolean): number => (flag ? 1 : 0);
    const [row] = await background.run(countMissingRecords(this.#schema), [
      knownRecords.map(({ key }) => key),
      knownRecords.map(({ version }) => version),
      knownRecords.map(({ index }) => toFlag(index.events.length > 0)),
      knownRecords.map(({ index }) => toFlag(index.events.some(({ state }) => state !== "finished"))),
    ]);
    return Number(row?.n) > 0;
  }
}

function identityOf({ dataset_id: datasetId, tables }: Row): DatasetIdentity {
  return { datasetId: String(datasetId), tables: String(tables) };
}

/** True if all tables exist, and the row that names them. */
function isUsable(row: Row | undefined): row is Row {
  return row !== undefined && hasAllTables(String(row.tables));
}
