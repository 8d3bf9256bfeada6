import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { usageError } from './command.js'
import { SETTINGS_FILE } from './settings-file.js'

/** Later files override earlier ones, in any folder: `.publishignore` can restore what `.gitignore` excludes. */
const IGNORE_FILES = ['.gitignore', '.publishignore'] as const

interface Rule {
  /** Relative to the published folder. */
  pattern: string
  /** Why a matching file is left out. */
  mark: string
}

/** Hidden files are left out unless a `.publishignore` restores them; a `.gitignore` cannot. */
const HIDDEN: Rule = { pattern: '.*', mark: 'it is hidden' }

/** The rules of one folder, including those of its parents, outermost first. */
interface FolderRules {
  rules: Record<(typeof IGNORE_FILES)[number], readonly Rule[]>
  matcher: Ignore
}

/**
 * Decides what is left out of a published folder: files that its `.gitignore` and `.publishignore` files exclude (gitignore(5)),
 * hidden files, and the settings of a node. Paths are relative to the folder, with `/` between their segments.
 */
export class IgnoreRules {
  private readonly folders = new Map<string, Promise<FolderRules>>()

  constructor(private readonly root: string) {}

  /**
   * Why a file or folder is left out, as a clause; undefined if it is published. Everything in a folder that is left out is
   * left out as well.
   *
   * @throws CommandError (`usage`) if an ignore file cannot be read: what it excludes would be published.
   */
  async reasonToLeaveOut(path: string, { isFolder }: { isFolder: boolean }): Promise<string | undefined> {
    const segments = path.split('/')
    // Nobody wants to publish credentials from a repository's configuration, even if `!.*` restores hidden files.
    if (segments.includes('.git')) return 'it belongs to git'
    if (basename(path) === SETTINGS_FILE) return 'it has settings, and perhaps a key'
    if (IGNORE_FILES.some((name) => name === basename(path))) return 'it is an ignore file'
    const { matcher } = await this.rulesIn(parentOf(path))
    const { ignored, rule } = matcher.test(isFolder ? `${path}/` : path)
    return ignored ? (rule?.mark ?? 'it is excluded') : undefined
  }

  private rulesIn(folder: string): Promise<FolderRules> {
    const known = this.folders.get(folder)
    if (known !== undefined) return known
    const loading = this.load(folder)
    this.folders.set(folder, loading)
    return loading
  }

  private async load(folder: string): Promise<FolderRules> {
    const above =
      folder === ''
        ? { rules: { '.gitignore': [], '.publishignore': [] } }
        : await this.rulesIn(parentOf(folder))
    const rules = { ...above.rules }
    for (const name of IGNORE_FILES) {
      const own = await this.read(folder === '' ? name : `${folder}/${name}`)
      if (own.length > 0) rules[name] = [...rules[name], ...own]
    }
    const isNew = IGNORE_FILES.some((name) => rules[name] !== above.rules[name])
    if ('matcher' in above && !isNew) return above
    const matcher = ignore({ ignorecase: IGNORES_CASE })
    return { rules, matcher: matcher.add([...rules['.gitignore'], HIDDEN, ...rules['.publishignore']]) }
  }

  private async read(path: string): Promise<Rule[]> {
    let text: string
    try {
      text = await readFile(join(this.root, path), 'utf8')
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return []
      const reason = messageOf(cause)
      throw usageError(`cannot read the ignore file ${path}: ${reason}`, cause)
    }
    const folder = parentOf(path)
    return text
      .replace(/^\ufeff/, '')
      .split(/\r?\n/)
      .flatMap((line) => {
        const pattern = patternFrom(line, folder)
        return pattern === undefined ? [] : { pattern, mark: `${path} excludes ${JSON.stringify(line)}` }
      })
  }
}

/** Git's default for `core.ignoreCase` on each platform. */
const IGNORES_CASE = process.platform === 'darwin' || process.platform === 'win32'

/**
 * A line of an ignore file as a pattern relative to the published folder; undefined for a comment or an empty pattern.
 *
 * @param folder The folder of the ignore file: a pattern matches only in it and below.
 */
function patternFrom(line: string, folder: string): string | undefined {
  if (line.startsWith('#')) return undefined
  const isNegative = line.startsWith('!')
  // Trailing spaces count only after a backslash.
  const body = line.slice(isNegative ? 1 : 0).replace(/(?<!\\) +$/, '')
  const segments = body.replace(/\/+$/, '')
  if (segments === '') return undefined
  if (folder === '') return line
  // A pattern with a slash at the start or in the middle is relative to its folder; others match at any depth.
  const below = segments.includes('/') ? body.replace(/^\//, '') : `**/${body}`
  return `${isNegative ? '!' : ''}/${literal(folder)}/${below}`
}

/** A path with all special characters of patterns escaped. */
function literal(path: string): string {
  return path.replace(/[\\*?[\]! #]/g, '\\$&')
}

function parentOf(path: string): string {
  const parent = dirname(path)
  return parent === '.' ? '' : parent
}
