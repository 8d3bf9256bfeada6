import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Files by their paths; those without content are folders. */
export type Files = Record<string, string | Uint8Array | undefined>

/** Writes files into a folder, and gives the folder. */
export async function writeFiles(folder: string, files: Files): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    const whole = join(folder, path)
    await mkdir(content === undefined ? whole : dirname(whole), { recursive: true })
    if (content !== undefined) await writeFile(whole, content)
  }
  return folder
}
