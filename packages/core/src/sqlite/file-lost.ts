import { PayhooksError } from "../protocol/errors.ts";
import { FileGoneError, FileOverwrittenError, LogGoneError } from "./file-check.ts";

/** The error says that other processes would not find the written data. */
export function isFileLostError(error: unknown): error is FileGoneError | LogGoneError {
  return error instanceof FileGoneError || error instanceof LogGoneError;
}

/** The error that a caller of the store sees, with a fix. */
export function fileLostError(error: FileGoneError | LogGoneError): PayhooksError {
  const [how, fix] = describeFileLoss(error);
  return new PayhooksError("ERR_INBOX_UNAVAILABLE", how, { fix, cause: error });
}

function describeFileLoss(error: FileGoneError | LogGoneError): readonly [how: string, fix: string] {
  if (error instanceof FileOverwrittenError) {
    return [
      "The file of sqliteInbox was overwritten while it was open.",
      "Events may be lost. Within ten seconds the file is opened again, if it is whole. If it is not, stop every process, put a whole copy back, delete the -wal and -shm files, and start them again.",
    ];
  }
  if (error instanceof FileGoneError) {
    return [
      "The file of sqliteInbox was deleted or exchanged while it was open.",
      "Its events are lost, unless you still have the file. If you have it, stop every process, put it back, and start them again. Otherwise sqliteInbox makes a new file within seconds if it was given a path; with a handle of your own, restart the process.",
    ];
  }
  return [
    "The -wal or -shm of the file of sqliteInbox was removed or cut while several handles had the file open.",
    "Find what removes files there, such as a clean-up script. If this does not end within ten seconds, restart every process that has the file open.",
  ];
}
