import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The version of this package, which is run from its sources or from `dist`: that of the nearest package.json above. */
export function packageVersion(folder = import.meta.dirname): string {
  const file = join(folder, 'package.json')
  if (existsSync(file)) return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
  const above = dirname(folder)
  if (above === folder) throw new Error('there is no package.json above these files')
  return packageVersion(above)
}
