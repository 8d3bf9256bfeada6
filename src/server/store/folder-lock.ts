import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { lockFile, makeFolder } from '../../../backend/src/facts/folder.js'

/** The file of a store before November 2026, when it was made of tables. */
export const OLD_STORE = 'minetree.sqlite'

/**
 * Creates the folder of a store, unless it is there, and keeps other processes out until what it returns is called.
 *
 * @throws as `makeFolder` and `lockFile`; Error if it holds a store of an earlier kind.
 */
export function lockFolder(folder: string): () => void {
  makeFolder(folder)
  if (existsSync(join(folder, OLD_STORE)))
    throw new Error(
      'it holds a store of an earlier kind, which is not read: choose another DATA_DIR, and import or follow again',
    )
  return lockFile(folder)
}
