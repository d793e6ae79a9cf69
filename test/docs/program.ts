import { join } from "node:path";
import ts from "typescript";
import { root } from "../package/workspace.ts";

const { config } = ts.readConfigFile(join(root, "tsconfig.base.json"), ts.sys.readFile);
const { options: base } = ts.parseJsonConfigFileContent(config, ts.sys, root);
// A snippet is a program, not a library: nothing is emitted from it, and its exports need no annotations.
const options: ts.CompilerOptions = {
  ...base,
  declaration: false,
  isolatedDeclarations: false,
  // As NestJS has them.
  experimentalDecorators: true,
};

/** The files of a program are compiled as if they were here, so that they resolve packages as the tests do. */
const folder = join(root, "test", "docs");

/** The files of the workspace and of TypeScript, parsed once for all programs. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** Files that only exist here, compiled together as strictly as the packages are. */
export class VirtualProgram {
  readonly #program: ts.Program;
  readonly #names: readonly string[];

  constructor(files: Readonly<Record<string, string>>) {
    const texts = new Map(Object.entries(files).map(([name, text]) => [join(folder, name), text]));
    this.#names = [...texts.keys()];
    const host = ts.createCompilerHost(options);
    const real = { fileExists: host.fileExists, readFile: host.readFile, getSourceFile: host.getSourceFile };
    host.fileExists = (path) => texts.has(path) || real.fileExists(path);
    host.readFile = (path) => texts.get(path) ?? real.readFile(path);
    host.getSourceFile = (path, version, ...rest) => {
      const text = texts.get(path);
      if (text !== undefined) return ts.createSourceFile(path, text, version);
      if (!parsed.has(path)) parsed.set(path, real.getSourceFile(path, version, ...rest));
      return parsed.get(path);
    };
    this.#program = ts.createProgram(this.#names, options, host);
  }

  /** The compiler's errors about one file, as lines `line: message`. */
  errorsOf(name: string): readonly string[] {
    const source = this.#sourceOf(name);
    const found = [
      ...this.#program.getSyntacticDiagnostics(source),
      ...this.#program.getSemanticDiagnostics(source),
    ];
    return found.map(({ start = 0, messageText }) => {
      const { line } = source.getLineAndCharacterOfPosition(start);
      return `${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
  }

  /** The string literals of an exported type, sorted. */
  literalsOf(name: string, type: string): readonly string[] {
    const checker = this.#program.getTypeChecker();
    const module = checker.getSymbolAtLocation(this.#sourceOf(name));
    const symbol = module && checker.getExportsOfModule(module).find((one) => one.name === type);
    if (symbol === undefined) throw new Error(`${name} does not export ${type}`);
    const declared = checker.getDeclaredTypeOfSymbol(symbol);
    const members = declared.isUnion() ? declared.types : [declared];
    return members
      .map((member) => {
        if (member.isStringLiteral()) return member.value;
        throw new Error(`${type} is not a union of texts: ${checker.typeToString(member)}`);
      })
      .sort();
  }

  #sourceOf(name: string): ts.SourceFile {
    const source = this.#program.getSourceFile(join(folder, name));
    if (source === undefined) throw new Error(`${name} is not part of the program`);
    return source;
  }
}

/** TypeScript as the JavaScript that Node runs. */
export function toJavaScript(text: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}
