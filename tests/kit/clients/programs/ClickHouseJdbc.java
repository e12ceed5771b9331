import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * Does with ClickHouse's JDBC driver what Metabase, DBeaver and Tableau do. Arguments: URL, account and password; standard
 * input has statements, each ended by U+0000. Prints one object of JSON.
 */
public class ClickHouseJdbc {
  public static void main(String[] args) throws Exception {
    String url = args[0];
    String database = args[1];
    Map<String, Object> result = new LinkedHashMap<>();
    try (Connection connection = connect(url, args, Map.of())) {
      DatabaseMetaData about = connection.getMetaData();
      result.put("schemas", rows(about.getSchemas(), "TABLE_SCHEM"));
      String[] types = {"TABLE", "VIEW", "MATERIALIZED VIEW", "DICTIONARY"};
      result.put("tables", rows(about.getTables(null, database, "%", types), "TABLE_NAME", "REMARKS"));
      result.put("columns",
          rows(about.getColumns(null, database, "%", "%"), "TABLE_NAME", "COLUMN_NAME", "TYPE_NAME", "REMARKS"));
      result.put("values", values(connection));
      result.put("prepared", prepared(connection));
      result.put("own", limited(connection));
      result.put("statements", statements(connection));
    }
    Map<String, String> inBerlin = Map.of("clickhouse_setting_session_timezone", "Europe/Berlin");
    try (Connection connection = connect(url, args, inBerlin); Statement statement = connection.createStatement()) {
      result.put("zone", all(statement.executeQuery("SELECT toDateTime('2026-03-01 00:30:00') = toDateTime('2026-02-28 23:30:00', 'UTC')")));
    }
    System.out.println(json(result));
  }

  /** The properties are those that Metabase sets. */
  static Connection connect(String url, String[] args, Map<String, String> more) throws SQLException {
    Properties properties = new Properties();
    properties.putAll(Map.of("user", args[1], "password", args[2], "use_server_time_zone_for_dates", "true",
        "product_name", "metabase/1.60", "remember_last_set_roles", "true", "http_connection_provider",
        "HTTP_URL_CONNECTION", "jdbc_ignore_unsupported_values", "true", "jdbc_schema_term", "schema",
        "clickhouse_setting_select_sequential_consistency", "1", "max_open_connections", "100"));
    properties.putAll(more);
    return DriverManager.getConnection(url, properties);
  }

  static Object values(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement();
        ResultSet found = statement.executeQuery(
            "SELECT timestamp, received_at, uuid, event, user_id, properties FROM events WHERE user_id = 'jane' ORDER BY timestamp LIMIT 1")) {
      ResultSetMetaData about = found.getMetaData();
      found.next();
      List<Object> values = new ArrayList<>();
      for (int column = 1; column <= about.getColumnCount(); column += 1) {
        Object value = found.getObject(column);
        values.add(List.of(about.getColumnTypeName(column), about.getColumnClassName(column), String.valueOf(value)));
      }
      values.add(String.valueOf(found.getObject(1, OffsetDateTime.class).toInstant()));
      return values;
    }
  }

  static Object prepared(Connection connection) throws SQLException {
    String sql = "SELECT event, count() FROM events WHERE user_id = ? AND timestamp >= ? AND timestamp < ? GROUP BY event";
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      statement.setString(1, "o'hara\\");
      statement.setTimestamp(2, Timestamp.from(Instant.parse("2026-03-01T00:00:00Z")));
      statement.setTimestamp(3, Timestamp.from(Instant.parse("2026-04-01T00:00:00Z")));
      return all(statement.executeQuery());
    }
  }

  static Object limited(Connection connection) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.setMaxRows(3);
      statement.setQueryTimeout(30);
      return all(statement.executeQuery("SELECT number FROM numbers(1000)")).size();
    }
  }

  /** What each statement of standard input returns: the number of its rows and their bytes, or an error. */
  static Object statements(Connection connection) throws Exception {
    List<Object> results = new ArrayList<>();
    for (String sql : new String(System.in.readAllBytes(), "UTF-8").split("\0")) {
      if (sql.isEmpty()) continue;
      try (Statement statement = connection.createStatement()) {
        results.add(rowsOf(statement, sql));
      } catch (Exception error) {
        results.add(Map.of("error", String.valueOf(error.getMessage())));
      }
    }
    return results;
  }

  static Object rowsOf(Statement statement, String sql) throws SQLException {
    if (!statement.execute(sql)) return Map.of("rows", 0, "first", "");
    try (ResultSet found = statement.getResultSet()) {
      int columns = found.getMetaData().getColumnCount();
      long count = 0;
      StringBuilder first = new StringBuilder();
      while (found.next()) {
        count += 1;
        for (int column = 1; column <= columns; column += 1) {
          String value = found.getString(column);
          if (count <= 100) first.append(value).append(' ');
        }
      }
      return Map.of("rows", count, "first", first.toString());
    }
  }

  static List<Object> rows(ResultSet found, String... columns) throws SQLException {
    List<Object> rows = new ArrayList<>();
    while (found.next()) {
      List<Object> row = new ArrayList<>();
      for (String column : columns) row.add(found.getString(column));
      rows.add(row);
    }
    found.close();
    return rows;
  }

  static List<Object> all(ResultSet found) throws SQLException {
    List<Object> rows = new ArrayList<>();
    int columns = found.getMetaData().getColumnCount();
    while (found.next()) {
      List<Object> row = new ArrayList<>();
      for (int column = 1; column <= columns; column += 1) row.add(found.getString(column));
      rows.add(row);
    }
    found.close();
    return rows;
  }

  static String json(Object value) {
    if (value instanceof Map<?, ?> map) {
      List<String> members = new ArrayList<>();
      map.forEach((key, member) -> members.add(json(String.valueOf(key)) + ":" + json(member)));
      return "{" + String.join(",", members) + "}";
    }
    if (value instanceof List<?> list) return "[" + String.join(",", list.stream().map(ClickHouseJdbc::json).toList()) + "]";
    if (value instanceof Number) return value.toString();
    if (value == null) return "null";
    StringBuilder text = new StringBuilder("\"");
    for (char character : value.toString().toCharArray()) {
      if (character == '"' || character == '\\') text.append('\\').append(character);
      else if (character < 32) text.append(String.format("\\u%04x", (int) character));
      else text.append(character);
    }
    return text.append('"').toString();
  }
}
