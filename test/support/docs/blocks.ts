import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../../..')

/** Code of a page, in its language. */
export interface Block {
  language: string
  code: string
  /** The line on which the code begins, from 1. */
  line: number
}

/** The pages that have code, by their paths in the repository. */
export const PAGES = [
  ...['README.md', 'packages/client/README.md'],
  ...readdirSync(join(ROOT, 'docs'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

/** The blocks of a page that name a language, in order. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map((found) => {
    const [, language = '', code = ''] = found
    return { language, code, line: text.slice(0, found.index).split('\n').length + 1 }
  })
}

/** The programs of a page: TypeScript. A block that imports nothing goes on with the program before it. */
export function programsOf(page: string): Block[] {
  const programs: Block[] = []
  for (const block of blocksOf(page).filter(({ language }) => language === 'ts')) {
    const last = programs.at(-1)
    if (/^import /m.test(block.code) || last === undefined) programs.push({ ...block })
    else last.code += block.code
  }
  return programs
}
