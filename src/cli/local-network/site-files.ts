import { join } from 'node:path'
import { readUtf8, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { FolderEntry } from '../../publish/folder.js'
import { packageFolder } from '../../server/config/package-info.js'
import { findAt, readWhole } from '../publish-files.js'

const FOLDER = 'assets/local-network'

/** What the pages of the site say in the places of `%NAME%` and so on. */
export interface SiteFacts {
  /** The name whose ordinal the site is. */
  NAME: string
  /** The outpoint in which that was mined. */
  ORIGIN: string
  /** The outpoint of a stream's first chunk. */
  STREAM: string
  /** Zero bits of a solution. */
  DIFFICULTY: string
}

/**
 * The files of the site, with the facts in its pages.
 *
 * @throws CommandError where the package has not got them.
 */
export async function readSite(facts: SiteFacts): Promise<readonly FolderEntry[]> {
  const { found } = await findAt(join(packageFolder(), FOLDER), 'site')
  const site = await readWhole(found)
  return 'entries' in site ? site.entries.map((entry) => withFacts(entry, facts)) : []
}

function withFacts(entry: FolderEntry, facts: SiteFacts): FolderEntry {
  if ('entries' in entry) return { ...entry, entries: entry.entries.map((each) => withFacts(each, facts)) }
  if (!entry.name.endsWith('.html')) return entry
  const page = readUtf8(entry.bytes).replace(/%([A-Z]+)%/g, (mark, key: string) =>
    key in facts ? facts[key as keyof SiteFacts] : mark,
  )
  return { ...entry, bytes: utf8(page) }
}
