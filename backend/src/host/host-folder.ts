import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { FolderInUseError, lockFile, makeFolder } from '../facts/folder.js'
import { messageOf } from '../protocol/coded-error.js'

/** A folder that no other process uses, until it is released. */
export interface HostFolder {
  path: string
  release(): void
}

const NAME = 'minetree-index'
/** How many processes may share a folder. */
const MOST_PROCESSES = 16

/**
 * Takes a folder for the index of a host: in `INDEX_DIR`; by default in the working directory, else among temporary files, else
 * in memory, as containers may have a read-only root. Processes that share it get one each: the first whose lock is free.
 *
 * @param name Identifies a database among those of the host.
 * @throws Error that says why none can be used.
 */
export function takeFolder(name: string): HostFolder {
  const { INDEX_DIR: set } = process.env
  const places = set ? [set] : [resolve(NAME), join(tmpdir(), NAME), join('/dev/shm', NAME)]
  const reasons: string[] = []
  for (const place of places) {
    try {
      makeFolder(place)
      return takeIn(place, name)
    } catch (error) {
      reasons.push(`${place}: ${messageOf(error)}`)
    }
  }
  throw new Error(`no folder for the index can be used, set INDEX_DIR to one (${reasons.join('; ')})`)
}

function takeIn(place: string, name: string): HostFolder {
  for (let n = 1; n <= MOST_PROCESSES; n++) {
    const path = join(place, `${name}-${n}`)
    makeFolder(path)
    try {
      return { path, release: lockFile(path) }
    } catch (error) {
      if (!(error instanceof FolderInUseError)) throw error
    }
  }
  throw new Error(`${MOST_PROCESSES} processes use it already`)
}
