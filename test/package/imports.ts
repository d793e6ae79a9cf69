import ts from "typescript";

/** One module that a source file names. */
export interface Import {
  readonly specifier: string;
  /** Nothing of it is left at run time. */
  readonly typeOnly: boolean;
}

/** Every module a TypeScript source names: imports, re-exports, `import()`, `require()` and types by `import("…")`. */
export function importsIn(source: string, fileName = "source.ts"): Import[] {
  const found: Import[] = [];
  const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier && ts.isStringLiteralLike(specifier)) found.push({ specifier: specifier.text, typeOnly });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword);
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly);
    } else if (ts.isImportEqualsDeclaration(node) && ts.isExternalModuleReference(node.moduleReference)) {
      add(node.moduleReference.expression, node.isTypeOnly);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true);
    } else if (ts.isCallExpression(node)) {
      const callee = node.expression;
      const loads =
        callee.kind === ts.SyntaxKind.ImportKeyword || callee.getText(file).match(/^require(\.resolve)?$/);
      if (loads) add(node.arguments[0], false);
    }
    ts.forEachChild(node, visit);
  };
  const file = ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest);
  visit(file);
  return found;
}
