import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Why a folder cannot be opened as a store of one kind, if it holds one of the other. One line that says what to do. */
export function otherStorage(folder: string, storage: 'tables' | 'facts'): string | undefined {
  const isTables = existsSync(join(folder, 'minetree.sqlite'))
  const isFacts = existsSync(join(folder, 'log.db'))
  if (storage === 'facts' && isTables)
    return 'it holds tables, of which no facts are made: choose another DATA_DIR and import or follow again, or unset STORAGE'
  if (storage === 'tables' && isFacts) return 'it holds facts: set STORAGE=facts, or choose another DATA_DIR'
  return undefined
}
